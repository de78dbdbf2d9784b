-- Overloads, operators and casts of users beside built-in ones: what PostgreSQL takes follows from the types of the operands.

CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN mail AS text CHECK (VALUE <> '');
CREATE DOMAIN small AS int2;
CREATE TYPE span AS RANGE (subtype = text);
CREATE TABLE t (id int PRIMARY KEY, n bigint, s smallint, d numeric, f float8, name text, code varchar(9), c char(3), flag boolean, day date,
    at timestamptz, m mood, e mail, o small, ints int[], texts text[], r int4range, p pair, u uuid, j jsonb, ident name, oid_of oid);

CREATE FUNCTION upper(mood) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION upper(int) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION length(pair) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION length(bigint) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION abs(text) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION abs(mood) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION round(mood, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION round(float8, int) RETURNS float8 LANGUAGE sql AS 'SELECT 1.0::float8';
CREATE FUNCTION array_length(text, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION max(x mood, y mood) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION substr(mood, int) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION to_char(int, mood) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION date_trunc(mood, date) RETURNS date LANGUAGE sql AS 'SELECT NULL::date';
CREATE FUNCTION repeat(anyelement, bigint) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION left(text, int, int DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE FUNCTION concat(mood, text) RETURNS text LANGUAGE sql AS 'SELECT ''x''';

CREATE FUNCTION is_it(int, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION is_it(mood, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION is_it(numeric, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION is_it(mail, mail) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION is_it(text, int4range) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = text, FUNCTION = is_it);
CREATE OPERATOR = (LEFTARG = mood, RIGHTARG = text, FUNCTION = is_it);
CREATE OPERATOR = (LEFTARG = mail, RIGHTARG = mail, FUNCTION = is_it);
CREATE OPERATOR < (LEFTARG = numeric, RIGHTARG = bigint, FUNCTION = is_it);
CREATE OPERATOR || (LEFTARG = int, RIGHTARG = text, FUNCTION = is_it);
CREATE OPERATOR + (LEFTARG = mood, RIGHTARG = text, FUNCTION = is_it);
CREATE OPERATOR @> (LEFTARG = text, RIGHTARG = int4range, FUNCTION = is_it);
CREATE FUNCTION negative(text) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE OPERATOR - (RIGHTARG = text, FUNCTION = negative);

CREATE FUNCTION mood_of(int) RETURNS mood LANGUAGE sql AS 'SELECT ''sad''::mood';
CREATE CAST (int AS mood) WITH FUNCTION mood_of(int) AS IMPLICIT;
CREATE FUNCTION text_of(mood) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
CREATE CAST (mood AS text) WITH FUNCTION text_of(mood) AS IMPLICIT;
CREATE FUNCTION bool_of(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE CAST (text AS boolean) WITH FUNCTION bool_of(text) AS ASSIGNMENT;
CREATE FUNCTION day_of(pair) RETURNS date LANGUAGE sql AS 'SELECT NULL::date';
CREATE CAST (pair AS date) WITH FUNCTION day_of(pair);
