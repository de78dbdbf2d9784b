"""`gatewayd demo --engine-only`: what it prints works as printed, it stops completely, and it finds its data again."""

import json
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from gatewayd.cli.demo.output import STATEMENTS
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.cli.gatewayd_process import Running, run, serving

LAST = STATEMENTS[-1][0]
EXPECTED = [(True, None), (True, None), (False, "table_access"), (False, "dangerous_statement")]


async def ask(server: str | StdioServerParameters, sql: str) -> dict[str, Any]:
    """The answer to one statement."""
    async with Client(server) as client:
        result = await client.call_tool("query", {"sql": sql, "intent": "see what the demo answers"})
    (block,) = result.content
    assert block.type == "text"
    answer: dict[str, Any] = json.loads(block.text)
    assert bool(result.is_error) is (not answer["allowed"] or "error" in answer)
    return answer


async def outcomes(server: str | StdioServerParameters) -> list[tuple[bool, str | None]]:
    """What comes of the statements that the demo prints."""
    answers = [await ask(server, statement) for statement, _ in STATEMENTS]
    return [(answer["allowed"], answer.get("policy_rule")) for answer in answers]


def url_of(demo: Running) -> str:
    demo.wait_for(LAST)
    found = re.search(r"^  URL +(\S+)$", demo.text, flags=re.MULTILINE)
    assert found is not None
    return found[1]


def postgres_of(state: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(state / "postgres")


async def test_what_it_prints_works(state: Path) -> None:
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url = url_of(demo)
        configurations = [json.loads(line) for line in demo.text.splitlines() if line.strip().startswith('{"mcpServers"')]
        http, stdio = (configuration["mcpServers"]["shop"] for configuration in configurations)
        assert http == {"url": url}
        assert await outcomes(http["url"]) == EXPECTED
        assert await outcomes(StdioServerParameters(**stdio)) == EXPECTED

        commands = [shlex.split(line) for line in demo.text.splitlines() if line.strip().startswith("claude mcp add")]
        assert commands[0] == ["claude", "mcp", "add", "--transport", "http", "shop", url]
        given = dict(word.removeprefix("--env=").split("=", 1) for word in commands[1] if word.startswith("--env="))
        assert given == stdio["env"]
        assert commands[1][commands[1].index("--") + 1 :] == [stdio["command"], *stdio["args"]]
        assert demo.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_it_stops_completely(state: Path, number: signal.Signals) -> None:
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url_of(demo)
        assert postgres_of(state).postmaster() is not None
        assert demo.stop(number) == 0
    assert "Traceback" not in demo.text
    assert postgres_of(state).postmaster() is None


async def test_it_keeps_data_policy_and_address(state: Path) -> None:
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        first = url_of(demo)
        assert (await ask(first, "UPDATE orders SET status = 'open' WHERE id = 17"))["allowed"]
        demo.stop()
    policy = state / "policy.yaml"
    policy.write_text(policy.read_text(encoding="utf-8").replace("secrets: deny", "secrets: read"), encoding="utf-8")
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        assert url_of(demo) == first
        answer = await ask(first, "SELECT status FROM orders WHERE id = 17")
        assert answer["rows"] == [{"status": "open"}]
        # The policy allows it now; the role was never granted the table: the second wall.
        assert (await ask(first, "SELECT * FROM secrets"))["error"]["sqlstate"] == "42501"
        demo.stop()


def test_after_a_crash_it_finds_its_postgres_and_stops_it(state: Path) -> None:
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url_of(demo)
        demo.stop(signal.SIGKILL)
    left = postgres_of(state).postmaster()
    assert left is not None
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url_of(demo)
        assert postgres_of(state).postmaster() == left
        demo.stop()
    assert postgres_of(state).postmaster() is None


def test_a_second_one_in_the_same_folder_is_refused(state: Path) -> None:
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url_of(demo)
        second = run(["demo", "--engine-only", "--state", str(state)])
        assert (second.returncode, second.stdout) == (69, "")
        assert "--state" in second.stderr
        assert postgres_of(state).postmaster() is not None
        demo.stop()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shown = run(["demo", "--state", str(tmp_path / "file" / "demo")])
    assert (shown.returncode, shown.stdout) == (69, "")
    assert "cannot be made or written (Not a directory); choose another folder with --state" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_policy_broken_by_hand_is_told(state: Path) -> None:
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url_of(demo)
        demo.stop()
    (state / "policy.yaml").write_text("table_acces: {}\n", encoding="utf-8")
    shown = run(["demo", "--engine-only", "--state", str(state)])
    assert (shown.returncode, shown.stdout) == (78, "")
    assert "table_acces" in shown.stderr
    assert postgres_of(state).postmaster() is None


async def test_personal_data_is_masked_alike_every_time(state: Path) -> None:
    answers = []
    for _ in range(2):
        with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
            answers.append(await ask(url_of(demo), "SELECT email, tax_id FROM customers ORDER BY id LIMIT 3"))
            demo.stop()
    assert answers[0]["rows"] == answers[1]["rows"]
    for row in answers[0]["rows"]:
        assert re.fullmatch(r"[a-z]•+@example\.com", row["email"])
        assert row["tax_id"] == "***"
    assert (state / "mask-salt").stat().st_mode & 0o777 == 0o600


def test_the_shop_is_the_same_everywhere(state: Path) -> None:
    """Pins the data: the README, screenshots and people's notes speak about it."""
    with serving(["demo", "--engine-only", "--state", str(state)]) as demo:
        url_of(demo)
        total = "SELECT sum(quantity * unit_price) FROM order_lines"
        assert postgres_of(state).psql(total, "shop") == "4753494.00"
        demo.stop()
