-- Which value of CONTROL_TOKEN_PEPPER a project's token key is made of: it must stay the same while the project has tokens.
ALTER TABLE projects ADD COLUMN token_pepper text NOT NULL DEFAULT '';
