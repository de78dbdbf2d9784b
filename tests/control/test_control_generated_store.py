"""The generated store of the benches holds what ingest would have made of the same calls: else its query times mean nothing."""

import random
from collections.abc import Iterator

from gatewayd.audit.ids import ulid_text
from gatewayd.audit.tree import CompactRange
from gatewayd.control.audit import rollup
from gatewayd.control.audit.batch import DETAIL_COLUMNS, EVENT_COLUMNS, Origin, check_batch
from gatewayd.control.audit.stored import StoredEvent
from gatewayd.link.formats.rows import AuditBody, PushedRow
from tests.bench.generated_calls import AGENTS, Calls, Counts, Project

PROJECT, GATEWAY, INSTANCE = ("01JDAAAAAAAAAAAAAAAAAAAAA" + digit for digit in "123")
TOKENS = [ulid_text(number << 80 | 1) for number in range(len(AGENTS))]
BEGAN_MS = 1_795_305_600_000
IDS = {"project_id", "gateway_id", "instance", "id", "query_id", "token_id"}
NUMBERS = {"seq", "ts", "received_ms", "schema_version"}


def read(lines: bytes, columns: tuple[str, ...]) -> Iterator[dict[str, object]]:
    """Rows of COPY text as the store would give them."""
    for line in lines.decode().splitlines():
        found: dict[str, object] = {}
        for name, text in zip(columns, line.split("\t"), strict=True):
            whole = text.replace("\\\\", "\\")
            if text == "\\N":
                found[name] = None
            elif name in IDS:
                found[name] = ulid_text(int(text, 16))
            elif name in NUMBERS:
                found[name] = int(text)
            elif name in ("has_intent", "unproved"):
                found[name] = text == "t"
            elif name in ("commitment", "salt"):
                found[name] = bytes.fromhex(whole.removeprefix("\\x"))
            elif name == "keys":
                found[name] = [int(each) for each in text.strip("{}").split(",") if each]
            else:
                found[name] = whole
        yield found


def test_generated_rows_are_what_ingest_makes_of_them() -> None:
    project = Project(PROJECT, "__self_host__", ["shop", "books"], TOKENS, seed=1)
    calls, counts, dice = Calls(project, GATEWAY, INSTANCE, seed=2), Counts(), random.Random(3)
    calls.add(sorted(BEGAN_MS + dice.randrange(10_800_000) for _ in range(400)), counts)
    event_lines, detail_lines, leaves = calls.take()
    events, details = list(read(event_lines, EVENT_COLUMNS)), list(read(detail_lines, DETAIL_COLUMNS))
    pushed = []
    for event, detail, leaf in zip(events, details, leaves, strict=True):
        fields = {name: event[name] for name in StoredEvent.__struct_fields__ if name in event}
        stored = StoredEvent(**fields, details=detail["details"], salt=detail["salt"])  # type: ignore[arg-type]
        salt, commitment = detail["salt"], event["commitment"]
        assert isinstance(salt, bytes)
        assert isinstance(commitment, bytes)
        pushed.append(PushedRow(stored.seq, leaf.hex(), commitment.hex(), stored.row(), "full", salt.hex()))
    tree = CompactRange()
    tree.extend(leaves)
    body = AuditBody(INSTANCE, 1, 1, len(pushed), tuple(pushed), tree.size, tree.root().hex())
    checked = check_batch(body, Origin(PROJECT, GATEWAY, 0), {})
    taken = [dict(zip(EVENT_COLUMNS, each, strict=True)) for each in checked.events]
    assert [each | {"received_ms": 0} for each in events] == taken
    assert [dict(zip(DETAIL_COLUMNS, each, strict=True)) for each in checked.details] == details
    assert {(each["event_type"]) for each in events} == {"ATTEMPTED", "DECIDED", "EXECUTED", "FAILED"}
    by_hour = rollup.summed(checked.counted)
    assert counts.rollup() == by_hour
    expected: dict[bytes, int] = {}
    for call in checked.calls:
        if call is not None:
            expected[call.kind] = expected.get(call.kind, 0) + 1
    found: dict[bytes, int] = {}
    for each in counts.calls().values():
        for call, count in each:
            found[call.kind] = found.get(call.kind, 0) + count
    assert found == expected
