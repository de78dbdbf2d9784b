"""Masks must leave honest questions answered: at least 95 % of the list by source_rewrite (issue: Usefulness)."""

from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.honest_statements import STATEMENTS
from tests.masking.masking_rig import rig
from tests.masking.masking_shop import SCHEMA, SHOWING, data


async def test_source_rewrite_answers_honest_statements(postgres: Postgres) -> None:
    assert len(STATEMENTS) >= 150
    refused = []
    async with rig(postgres.create_database(SCHEMA + data(5)), SHOWING) as ask:
        for sql in STATEMENTS:
            outcome = await ask(sql)
            if not isinstance(outcome, Result):
                refused.append((sql, outcome))
    assert len(refused) <= len(STATEMENTS) * 0.05, refused
