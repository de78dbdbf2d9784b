"""A database with one of everything that a catalog tells of."""

SCHEMA = """
CREATE EXTENSION vector;
CREATE SCHEMA "My App";
CREATE TYPE public.mood AS ENUM ('sad', 'happy');
CREATE TABLE public.orders (id bigserial PRIMARY KEY, total numeric(12,2) NOT NULL, gone int, note varchar(10)[], feeling mood);
ALTER TABLE public.orders DROP COLUMN gone;
ALTER TABLE public.orders ENABLE ROW LEVEL SECURITY;
CREATE TABLE "My App"."Weird, ""table"" :relid 1260" (a public.orders, b public.orders[]);

CREATE TABLE public.events (at date NOT NULL, kind text) PARTITION BY RANGE (at);
CREATE TABLE public.events_2025 PARTITION OF public.events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE public.person (name text);
CREATE TABLE public.company (vat text);
CREATE TABLE public.both () INHERITS (public.person, public.company);

CREATE FUNCTION public.slug(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE FUNCTION public.noisy(int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN 1; END';
CREATE FUNCTION public.same(text, text) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 = $2';
CREATE PROCEDURE public.chore() LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION public.noisy2(int, int) RETURNS int LANGUAGE sql VOLATILE SECURITY DEFINER AS 'SELECT $1 + $2';
CREATE AGGREGATE public.noisy_sum(int) (SFUNC = public.noisy2, STYPE = int);
CREATE AGGREGATE public.plain_sum(int) (SFUNC = int4_avg_accum, STYPE = bigint[], FINALFUNC = int8_avg, INITCOND = '{0,0}');
CREATE AGGREGATE public.settings(bool) (SFUNC = pg_catalog.current_setting, STYPE = text, INITCOND = 'data_directory');
CREATE OPERATOR public.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = public.same);
CREATE OPERATOR "My App".#@# (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl);

CREATE DOMAIN public.email AS text CHECK (public.slug(VALUE) = VALUE AND VALUE OPERATOR(public.===) VALUE);
CREATE DOMAIN public.work_email AS public.email CHECK (current_setting('x', true) IS NULL);
CREATE DOMAIN public.positive AS int CHECK (VALUE > 0);
CREATE TYPE public.contact AS (name text, address public.work_email);
CREATE TYPE public.address_range AS RANGE (SUBTYPE = public.email);
CREATE TABLE public.people (id int, contact public.contact, emails public.email[]);
CREATE FUNCTION public.to_mood(int) RETURNS public.mood LANGUAGE sql IMMUTABLE AS 'SELECT NULL::public.mood';
CREATE CAST (int AS public.mood) WITH FUNCTION public.to_mood(int);
CREATE FUNCTION public.from_mood(public.mood) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE CAST (public.mood AS int) WITH FUNCTION public.from_mood(public.mood);

CREATE VIEW public.big_orders AS SELECT id, public.slug(note[1]) AS slug FROM public.orders WHERE total > 10;
CREATE VIEW public.bigger AS SELECT * FROM public.big_orders WHERE 'a' OPERATOR(public.===) slug;
CREATE VIEW public.nosy AS
    SELECT (SELECT count(*) FROM pg_catalog.pg_authid) AS roles, pg_read_file('x') AS file, lower('x') AS "x :funcid 2621 ",
           (SELECT count(*) FROM pg_catalog.pg_stat_activity) AS busy, 'a'::text::public.email AS email;
CREATE MATERIALIZED VIEW public.cached AS SELECT count(*) AS n FROM public.orders;
CREATE VIEW public.ruled AS SELECT 1 AS a;
CREATE RULE put AS ON INSERT TO public.ruled DO INSTEAD INSERT INTO public.person VALUES (public.slug('x'));
CREATE VIEW public.recursive_view AS WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r;
"""
