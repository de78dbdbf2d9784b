"""What pages are put together from: text of strangers, times, charts, snippets for clients."""

import json
import shlex
import tomllib
from typing import Any

import pytest

from gatewayd.control.tokens.snippets import Snippet, server_name, snippets
from gatewayd.control.web.chart import Calls, chart
from gatewayd.control.web.shown_text import is_hidden, plain, text
from gatewayd.control.web.times import distance_shown, time_shown

NOON = 1_795_348_800_000  # 2026-11-22 12:00 UTC
MINUTE = 60_000
HIDDEN = (
    0x202E, 0x2066, 0x200B, 0x200D, 0xFEFF, 0xAD, 0xA0, 0x3000, 0x2028, 0, 0x1B, 0x85, 0x3164, 0xFE0F, 0xE0041, 0xD800
)  # fmt: skip


@pytest.mark.parametrize("code_point", HIDDEN, ids=hex)
def test_what_a_reader_would_not_see_is_marked(code_point: int) -> None:
    hidden, code = chr(code_point), f"U+{code_point:04X}"
    assert is_hidden(hidden)
    assert plain(f"a{hidden}b") == f"a⟨{code}⟩b"
    shown = text(f"a{hidden}b").__html__()
    assert hidden not in shown
    assert f">{code}</span>" in shown


@pytest.mark.parametrize("honest", ["SELECT 1\n\tFROM t", "Grüße an Zoë", "שלום", "注文", "naïve €5 – “ok”", "👍"])
def test_honest_text_is_shown_as_it_is(honest: str) -> None:
    assert plain(honest) == honest
    assert text(honest).__html__() == f"<bdi>{honest}</bdi>"


def test_html_is_text() -> None:
    shown = text("<script>alert('1')</script>\u202e&").__html__()
    assert "<script" not in shown
    assert shown.startswith("<bdi>&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;<span")
    assert shown.endswith("&amp;</bdi>")


def test_times_are_the_reader_s_with_utc_beside() -> None:
    shown = time_shown(NOON, "Europe/Vienna").__html__()
    assert ">2026-11-22\u00a013:00</time>" in shown
    assert 'title="2026-11-22 12:00:00 UTC"' in shown
    assert ">2026-11-22\u00a012:00<" in time_shown(NOON, "No/Such").__html__()
    assert time_shown(None, "UTC").__html__() == "never"


@pytest.mark.parametrize(
    ("apart_ms", "words"),
    [
        (0, "now"), (-1000, "1 second ago"), (-59 * MINUTE, "59 minutes ago"), (-60 * MINUTE, "1 hour ago"),
        (-48 * 60 * MINUTE, "2 days ago"), (-400 * 1440 * MINUTE, "2025-10-18"), (90 * MINUTE, "in 2 hours"),
        (1440 * MINUTE - 1, "in 24 hours"), (90 * 1440 * MINUTE - 1, "in 90 days"),
    ],
)  # fmt: skip
def test_distances_are_told_in_words(apart_ms: int, words: str) -> None:
    assert distance_shown(NOON + apart_ms, NOON, "UTC").__html__().endswith(f">{words}</time>")


def test_a_chart_keeps_what_is_rare_visible() -> None:
    drawn = chart([Calls(f"{hour}:00", "", calls=5000, denied=1) for hour in range(24)])
    assert drawn.top == 5000
    assert [part.kind for part in drawn.parts[0]] == ["denied", "calls"]
    assert float(drawn.parts[0][0].height) >= 1
    assert float(drawn.parts[0][1].y) >= 0
    assert (drawn.labels[0], drawn.labels[-1]) == ("0:00", "23:00")
    assert (drawn.calls, drawn.denied, drawn.failed) == (120_000, 24, 0)
    empty = chart([Calls("a", "")])
    assert (empty.top, empty.parts, empty.labels) == (1, ((),), ("a",))


URL = "https://console.example.com/mcp"
NAMES = ("Shop", "שלום", 'a "quoted" $(name)', "x" * 200, "--help")


@pytest.mark.parametrize("project", NAMES)
def test_snippets_are_what_their_clients_read(project: str) -> None:
    name = server_name(project)
    found = {each.key: each.text for each in snippets(name, URL, "gw_live_0_1")}
    assert shlex.split(found["claude-code"])[:7] == ["claude", "mcp", "add", "--transport", "http", name, URL]
    assert shlex.split(found["claude-code"])[-1] == "Authorization: Bearer gw_live_0_1"
    headers = {"Authorization": "Bearer gw_live_0_1"}
    assert json.loads(found["cursor"])["mcpServers"][name] == {"url": URL, "headers": headers}
    assert json.loads(found["vs-code"])["servers"][name] == {"type": "http", "url": URL, "headers": headers}
    assert tomllib.loads(found["codex"])["mcp_servers"][name] == {"url": URL, "http_headers": headers}
    desktop: Any = json.loads(found["claude-desktop"])["mcpServers"][name]
    assert desktop["args"][2] == URL
    assert desktop["env"]["AUTHORIZATION"] == headers["Authorization"]
    compile(found["python"], "snippet", "exec")
    words = shlex.split(found["curl"].replace("\\\n", ""))
    assert words[:3] == ["curl", "-sS", URL]
    assert json.loads(words[-1])["method"] == "tools/call"


def test_every_client_has_one() -> None:
    clients = [each.client for each in snippets("gatewayd", URL, "t")]
    assert clients == ["Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "Python", "curl"]
    assert all(isinstance(each, Snippet) and each.where for each in snippets("gatewayd", URL, "t"))
