"""A shop with masked columns, made twice: the two databases differ in the raw values of masked columns and in nothing else."""

import random
from collections.abc import Callable

SCHEMA = """
CREATE SCHEMA app;
CREATE TABLE public.users (
    id int PRIMARY KEY, name text NOT NULL, city text, email text NOT NULL, ssn text, phone varchar(40), birthday date,
    salary numeric(12,2), age int, manager_id int REFERENCES users, created_at timestamptz NOT NULL, profile jsonb, tags text[]
);
CREATE INDEX users_ssn ON users (ssn) INCLUDE (id);
CREATE INDEX users_city ON users (city);
CREATE TABLE public.orders (
    id int PRIMARY KEY, user_id int NOT NULL REFERENCES users, status text NOT NULL, total numeric(10,2) NOT NULL,
    card text, ordered_at timestamp NOT NULL
);
CREATE TABLE public.products (id int PRIMARY KEY, title text NOT NULL, price numeric(10,2) NOT NULL);
CREATE TABLE public.order_items (order_id int REFERENCES orders, product_id int REFERENCES products, quantity int NOT NULL);
CREATE TABLE app.visits (id int NOT NULL, day date NOT NULL, user_id int, ip inet, seconds int) PARTITION BY RANGE (day);
CREATE TABLE app.visits_2023 PARTITION OF app.visits FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE app.visits_2024 PARTITION OF app.visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE app.people (id int, label text);
CREATE TABLE app.staff (badge text) INHERITS (app.people);
CREATE TABLE app."Größe" ("Id" int, "Näme x" text, "Wert" int);
CREATE TABLE public.notes (id int PRIMARY KEY, body text NOT NULL);
CREATE VIEW public.user_cities AS SELECT id, name, city FROM users;
CREATE VIEW public.contacts AS SELECT u.id, u.name, u.email, u.ssn AS number FROM users u WHERE u.city IS NOT NULL;
CREATE VIEW app.contacts_again AS SELECT * FROM public.contacts;
CREATE VIEW public.rich AS SELECT id, name FROM users WHERE salary > 50000;
CREATE VIEW public.whole AS SELECT id, row_to_json(users) AS j FROM users;
CREATE VIEW public.spend AS SELECT u.city, count(*) AS n, sum(o.total) AS total FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.city;
CREATE MATERIALIZED VIEW app.cards AS SELECT id, card, total FROM orders;
"""

CITIES = ("Oslo", "Bergen", "Lima", None)
STATUSES = ("new", "paid", "sent")


def data(
    seed: int,
    *,
    users: int = 40,
    orders: int = 120,
    same_sizes: bool = False,
    stored: Callable[[str, str], str] = lambda kind, value: value,
) -> str:
    """INSERTs. `seed` drives the raw values of masked columns alone; where they are NULL does not depend on it, except below
    null-out, where it may. `same_sizes`: the values have the same number of bytes for every seed, so that rows that writes move
    are moved alike. `stored` gives what is stored for a raw text; its kind is what the text begins with."""
    same = random.Random(1)
    raw = random.Random(seed)

    def text(prefix: str) -> str:
        value = f"{prefix}{raw.randrange(10**8, 10**9)}{'x' * (0 if same_sizes else raw.randrange(20))}"
        return f"'{stored(prefix, value)}'"

    least, nulls = (10**5, same) if same_sizes else (0, raw)

    rows = []
    for number in range(1, users + 1):
        city = same.choice(CITIES)
        rows.append(
            f"({number}, 'user {number}', {_literal(city)}, {text('mail')}, {text('ssn') if same.random() < 0.8 else 'NULL'}, "
            f"{text('tel') if nulls.random() < 0.7 else 'NULL'}, "
            f"DATE '1950-01-01' + {raw.randrange(20000)}, {raw.randrange(least, 10**6)}, {raw.randrange(100)}, "
            f"{same.randrange(1, number) if number > 3 else 'NULL'}, TIMESTAMPTZ '2024-01-01' + interval '{same.randrange(500)} hours', "
            f"'{{\"secret\": {raw.randrange(100, 1000)}}}', ARRAY[{text('t')}])"
        )
    sql = [f"INSERT INTO users VALUES {', '.join(rows)};"]
    rows = [
        f"({number}, {same.randrange(1, users + 1)}, '{same.choice(STATUSES)}', {same.randrange(1, 50000) / 100}, {text('card')}, "
        f"TIMESTAMP '2024-01-01' + interval '{same.randrange(8000)} minutes')"
        for number in range(1, orders + 1)
    ]
    sql.append(f"INSERT INTO orders VALUES {', '.join(rows)};")
    sql.append("INSERT INTO products SELECT n, 'product ' || n, n * 1.5 FROM generate_series(1, 10) n;")
    sql.append("INSERT INTO order_items SELECT n, 1 + n % 10, 1 + n % 4 FROM generate_series(1, 100) n;")
    rows = [
        f"({number}, DATE '2023-06-01' + {same.randrange(400)}, {same.randrange(1, users + 1)}, "
        f"'10.0.{raw.randrange(256)}.{raw.randrange(256)}', {same.randrange(1000)})"
        for number in range(1, 61)
    ]
    sql.append(f"INSERT INTO app.visits VALUES {', '.join(rows)};")
    sql.append(f"INSERT INTO app.people VALUES (1, {text('l')}), (2, {text('l')});")
    sql.append(f"INSERT INTO app.staff VALUES (3, {text('l')}, {text('b')}), (4, {text('l')}, {text('b')});")
    sql.append(f"""INSERT INTO app."Größe" VALUES (1, {text("w")}, {raw.randrange(9)}), (2, {text("w")}, {raw.randrange(9)});""")
    sql.append("INSERT INTO notes SELECT n, 'note ' || n FROM generate_series(1, 5) n;")
    sql.append("REFRESH MATERIALIZED VIEW app.cards; ANALYZE;")
    # Parallel workers give rows that compare equal in another order from one run to the next.
    alone = "'ALTER DATABASE %I SET max_parallel_workers_per_gather = 0', current_database()"
    sql.append(f"DO $$ BEGIN EXECUTE format({alone}); END $$;")
    return "\n".join(sql)


def _literal(value: str | None) -> str:
    return "NULL" if value is None else f"'{value}'"


HIDING = """
table_access: {default: read_write}
guardrails: {block_unqualified_dml: false, block_ddl: false}
mask_source_rewrite: true
column_masks:
  users: {email: full-redact, ssn: full-redact, phone: null-out, birthday: null-out, salary: null-out, age: full-redact, profile: full-redact, tags: null-out}
  orders: {card: full-redact}
  app.visits: {ip: null-out}
  app.people: {label: full-redact}
  app.staff: {badge: null-out}
  app.Größe: {Näme x: full-redact, Wert: null-out}
"""
"""Masks that show nothing of a value."""

SHOWING = """
table_access: {default: read_write}
guardrails: {block_unqualified_dml: false, block_ddl: false}
mask_source_rewrite: true
column_masks:
  users:
    email: {t: pseudonymize, kind: email}
    ssn: consistent-hash
    phone: {t: partial, keepEnd: 2}
    birthday: {t: generalize, granularity: year}
    salary: {t: noise, ratio: 0.1}
    age: {t: generalize, granularity: 10}
    profile: full-redact
    tags: null-out
  orders: {card: {t: partial, keepEnd: 4}}
  app.visits: {ip: null-out}
  app.people: {label: consistent-hash}
"""
"""Masks that keep something to count and join by."""

KEYED = """
table_access: {default: read_write}
guardrails: {block_unqualified_dml: false, block_ddl: false}
mask_source_rewrite: true
column_masks:
  users: {email: {t: pseudonymize, kind: email}, ssn: consistent-hash, phone: consistent-hash}
  orders: {card: consistent-hash}
  app.people: {label: {t: pseudonymize, kind: name}}
  app.staff: {badge: consistent-hash}
  app.Größe: {Näme x: {t: pseudonymize, kind: phone}}
"""
"""Masks with a key, all on texts, which they leave as texts."""
