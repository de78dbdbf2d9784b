"""Much of everything in a world's store: rows that are there, multiplied behind all forms, with ids of their own.

`people` and `projects` stand alone, since tests take them away again.
"""

from typing import Final

from tests.console.world import World
from tests.control.two_organisations import uuid

MANY: Final = 10_000
TOKENS: Final = 990
GATEWAYS: Final = 200
LONG: Final = 60
"""Statements of a megabyte: more than a page lists."""
# Each with an id of its own, above those of the people and projects that are there.
PEOPLE: Final = """
INSERT INTO people (person_id, email, email_key, name, created_ms)
SELECT ('ffffffff-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@many.example', n || '@many.example', 'Person ' || n, 1
FROM generate_series(1, {0}) AS n;
INSERT INTO memberships (person_id, org_id, role, since_ms)
SELECT person_id, (SELECT org_id FROM organisations), 'member', 1 FROM people WHERE name LIKE 'Person %';
"""
PROJECTS: Final = """
INSERT INTO projects (org_id, project_id, name, name_key, created_ms)
SELECT (SELECT org_id FROM organisations), ('ffffffff-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Many ' || n, 'm' || n, 1
FROM generate_series(1, {0}) AS n;
"""
GONE: Final = """
DELETE FROM memberships WHERE person_id IN (SELECT person_id FROM people WHERE name LIKE 'Person %');
DELETE FROM people WHERE name LIKE 'Person %';
DELETE FROM projects WHERE name LIKE 'Many %';
"""
_COPIES: Final = """
INSERT INTO {table} SELECT made.* FROM {table} AS base, generate_series(1, {count}) AS n,
LATERAL jsonb_populate_record(base, jsonb_build_object({own})) AS made
WHERE base.ctid = (SELECT ctid FROM {table} WHERE {of} LIMIT 1);
"""
TODAY: Final = """
SELECT tablename AS name FROM pg_tables WHERE tablename = to_char(now() AT TIME ZONE 'utc', '"audit_"YYYYMMDD')
"""
_ID: Final = "md5('{0}' || n)::uuid"
_QUERY: Final = "md5(e.query_id::text || n)::uuid"
_QUERIES: Final = """
INSERT INTO {details} SELECT made.* FROM {details} AS d JOIN {events} AS e USING (project_id, gateway_id, instance, seq),
generate_series(1, {count}) AS n, LATERAL jsonb_populate_record(d, jsonb_build_object('seq', d.seq + n * 100000)) AS made
WHERE e.query_id = '{query}';
INSERT INTO {events} SELECT made.* FROM {events} AS e, generate_series(1, {count}) AS n,
LATERAL jsonb_populate_record(e, jsonb_build_object('seq', e.seq + n * 100000, 'ts', e.ts + n,
  'id', md5(e.id::text || n)::uuid, 'query_id', md5(e.query_id::text || n)::uuid)) AS made
WHERE e.query_id = '{query}';
"""


def fill(world: World) -> None:
    """Ten thousand rows in every list of the world's shop and its organisation; of statements, also sixty of a megabyte."""
    for statement in (PEOPLE, PROJECTS):
        world.postgres.execute(statement.format(MANY), world.dsn)
    shop = f"project_id = '{uuid(world.places['shop'])}'"
    waiting, denied, long = (f"approval_id = '{uuid(world.places[name])}'" for name in ("waiting", "denied", "long_write"))
    for table, of, count, own in (
        ("agent_tokens", shop, TOKENS, f"'token_id', {_ID.format('token')}"),
        ("api_keys", "true", TOKENS, f"'key_id', {_ID.format('key')}, 'lookup', '\\x' || md5('key' || n)"),
        ("gateways", shop, GATEWAYS, f"'gateway_id', {_ID.format('gateway')}"),
        ("taints", shop, MANY, "'grant_key', '\\x' || md5('taint' || n)"),
        ("policy_versions", shop, MANY, "'version', -n"),
        ("org_events", "seq = 0", MANY, "'seq', -n"),
        ("approvals", denied, MANY, f"'approval_id', {_ID.format('denied')}, 'number', -n"),
        ("approvals", waiting, MANY, f"'approval_id', {_ID.format('waits')}, 'grant_key', '\\x' || md5('waits' || n)"),
        ("approvals", long, LONG, f"'approval_id', {_ID.format('long')}, 'grant_key', '\\x' || md5('long' || n)"),
    ):
        world.postgres.execute(_COPIES.format(table=table, of=of, count=count, own=own), world.dsn)
    world.postgres.execute(
        "INSERT INTO approvals_pending SELECT project_id, grant_key, approval_id, asker, expires_ms FROM approvals"
        " WHERE state = 'pending' ON CONFLICT DO NOTHING",
        world.dsn,
    )
    events = world.postgres.query(TODAY, world.dsn)[0]["name"]
    details = events.replace("audit_", "audit_details_")
    for place, count in (("query", MANY), ("long_query", LONG)):
        query = uuid(world.places[place])
        world.postgres.execute(_QUERIES.format(events=events, details=details, count=count, query=query), world.dsn)
    world.postgres.execute("ANALYZE", world.dsn)
