-- Overloads of what every statement uses. They close so much that only some of the worlds have them.
CREATE FUNCTION lower(mood) RETURNS text STABLE LANGUAGE sql AS $$ SELECT max(code) FROM public.secrets $$;
CREATE FUNCTION length(addr) RETURNS integer VOLATILE LANGUAGE plpgsql AS $$ BEGIN UPDATE public.stock SET n = n + 1; RETURN 1; END $$;
CREATE FUNCTION spy_add(mood, mood) RETURNS bigint STABLE LANGUAGE sql AS $$ SELECT public.spy() $$;
CREATE OPERATOR + (LEFTARG = mood, RIGHTARG = mood, FUNCTION = spy_add);
CREATE FUNCTION spy_cast(mood) RETURNS bigint STABLE LANGUAGE sql AS $$ SELECT public.spy() $$;
CREATE CAST (mood AS bigint) WITH FUNCTION spy_cast(mood) AS ASSIGNMENT;
CREATE FUNCTION spy_addr(text) RETURNS addr STABLE LANGUAGE sql AS $$ SELECT ROW(code, 'x', 1)::public.addr FROM public.secrets LIMIT 1 $$;
CREATE CAST (text AS addr) WITH FUNCTION spy_addr(text);
