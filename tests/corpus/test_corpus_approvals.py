"""With approvals on for all writes, no statement of the corpus that may write passes without one."""

from collections import Counter

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Held
from gatewayd.policy.file.model import Approvals
from gatewayd.sql.facts.analyze import analyze
from tests.corpus.corpus import Row, allow_files, deny_files, policies


def test_whatever_may_write_waits_for_a_person(corpus_catalogs: dict[str, Catalog]) -> None:
    policy = msgspec.structs.replace(policies()["unguarded"], approvals=Approvals(writes=True))
    seen: Counter[str] = Counter()
    rows: list[tuple[Row, str]] = [(row, "sample") for file in deny_files().values() for row in file.rows]
    rows += [(row, file.database) for file in allow_files().values() for row in file.rows]
    for row, database in rows:
        match decide(analyze(row.sql), policy, corpus_catalogs[database]):
            case Allowed(statement=statement):
                is_read_only = statement.returns_rows if statement.form == "utility" else not statement.locks
                assert is_read_only, row.sql
                assert statement.category == "read" or statement.explains == "plan", row.sql
                seen["passes"] += 1
            case Held(allowed=allowed, write_class=write_class):
                assert allowed.statement.category != "read" or allowed.statement.locks, row.sql
                seen[write_class] += 1
            case _:
                seen["refused"] += 1
    assert min(seen.values()) > 5, seen
