"""An event becomes columns: cut, never refused, and always valid UTF-8."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.audit import events
from gatewayd.audit.events import Agent, Attempted, Decided, Event, Executed, Failed, Payload, PolicyReloaded, Query, QueryId
from gatewayd.audit.rows import COLUMNS, cut_to_bytes, row_of

NOBODY = Agent()
ANY_TEXT = st.text(alphabet=st.characters(), max_size=50)  # lone surrogates too


def columns_of(payload: Payload, agent: Agent = NOBODY, intent: str | None = None) -> dict[str, Any]:
    row = row_of(Event(Query(QueryId("Q"), "shop", agent, intent), 1234, payload))
    columns = dict(zip(COLUMNS[1:], row.columns, strict=True))
    return {**columns, "payload": msgspec.json.decode(row.columns[9])}


def test_columns_keep_their_order_and_payload_is_json() -> None:
    columns = columns_of(Attempted("SELECT 1", "0123456789abcdef"), Agent("claude", "1.2", "01ARYZ6S41TSV4RRFFQ69G5FAV"), "look")
    assert columns == {
        "query_id": "Q",
        "tenant_id": "__self_host__",
        "database": "shop",
        "agent_name": "claude",
        "agent_version": "1.2",
        "agent_intent": "look",
        "mcp_token_id": "01ARYZ6S41TSV4RRFFQ69G5FAV",
        "ts": 1234,
        "event_type": "ATTEMPTED",
        "payload": {"sql_raw": "SELECT 1", "sql_fingerprint": "0123456789abcdef"},
        "schema_version": 3,
    }


def test_every_limit_cuts() -> None:
    columns = columns_of(Decided("ALLOW", "SELECT", ("public.t",) * 65), Agent("n" * 129, "v" * 65), "i" * 501)
    assert [len(columns[name]) for name in ("agent_name", "agent_version", "agent_intent")] == [128, 64, 500]
    assert len(columns["payload"]["tables_touched"]) == 64
    executed = columns_of(Executed(1, 1, columns_masked=("c",) * 65, masking_reason="r" * 513))["payload"]
    assert (len(executed["columns_masked"]), len(executed["masking_reason"])) == (64, 512)
    assert len(columns_of(Failed(1, 1, "42P01", "m" * 4097))["payload"]["error_message"]) == 4096


def test_absent_fields_are_left_out_but_a_reload_without_table_access_says_null() -> None:
    assert columns_of(Decided("ALLOW", "SELECT", (), dialect="postgres"))["payload"] == {
        "decision": "ALLOW",
        "statement_type": "SELECT",
        "tables_touched": [],
        "dialect": "postgres",
    }
    assert columns_of(PolicyReloaded("sighup", None, (), ("shop",), {}, {}))["payload"]["table_access"] is None


@pytest.mark.parametrize("character", ["a", "é", "€", "🐘"])
@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_sql_over_a_mebibyte_is_cut_between_characters(character: str, extra: int) -> None:
    sql = "x" * extra + character * (events.SQL_RAW_BYTES // len(character.encode()) + 1)
    kept = columns_of(Attempted(sql, "f" * 16))["payload"]["sql_raw"]
    assert sql.startswith(kept)
    assert events.SQL_RAW_BYTES - 4 < len(kept.encode()) <= events.SQL_RAW_BYTES


@given(ANY_TEXT, st.integers(0, 60))
def test_a_cut_text_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    escaped = text.encode(errors="backslashreplace").decode()
    cut = cut_to_bytes(text, limit)
    if len(escaped.encode()) <= limit:
        assert cut == text
    else:
        assert escaped.startswith(cut)
        assert len((cut + escaped[len(cut)]).encode()) > limit


@given(ANY_TEXT)
def test_lone_surrogates_and_nul_are_recorded_not_refused(text: str) -> None:
    columns = columns_of(Attempted(text, "f" * 16), Agent(text, text), text)
    recorded = text.encode(errors="backslashreplace").decode()
    assert columns["payload"]["sql_raw"] == recorded
    assert columns["agent_intent"] == recorded
    assert recorded.startswith(columns["agent_version"])


def test_surrogates_inside_nested_values_are_escaped_too() -> None:
    payload = PolicyReloaded("sighup", {"default": "\ud800"}, ("\udfff",), (), {}, {"a": [{"\ud800": None}]})
    columns = columns_of(payload)["payload"]
    assert columns["table_access"] == {"default": "\\ud800"}
    assert columns["diff"] == {"a": [{"\\ud800": None}]}
