"""A gatewayd with its operators' routes open, and what operators hold in their hands: token, routes, audit rows, metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.cli.gatewayd_process import Running
from tests.conftest import reserved_port
from tests.daemon.daemon_rig import PATIENCE_S, POLICY, gatewayd

TOKEN = "the-indexer-token"
BEARER = {"authorization": f"Bearer {TOKEN}"}


class Operator:
    """The operators' side of one running gatewayd. Blocking: what agents do meanwhile goes on in gatewayd's own process."""

    def __init__(self, running: Running, folder: Path, port: int) -> None:
        self.running = running
        self.folder = folder
        self.port = port
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=BEARER, timeout=PATIENCE_S)

    def policy(self, text: str) -> httpx.Response:
        return self.http.post("/admin/policy", content=text.encode())

    def dry_run(self, **request: object) -> dict[str, Any]:
        answer = self.http.post("/admin/dry-run", json=request)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def policy_hash(self, database: str = "__default__") -> str:
        found: str = self.dry_run(database=database, sql="SELECT 1")["policy_hash"]
        return found

    def rows(self, event_type: str | None = None) -> list[dict[str, Any]]:
        """All audit rows, pulled page by page."""
        found: list[dict[str, Any]] = []
        cursor: str | None = "0"
        while cursor is not None:
            page = self.http.get(f"/audit/since/{cursor}?limit=1000").json()
            found += page["rows"]
            cursor = page["next_cursor"]
        return [row for row in found if event_type in (None, row["event_type"])]

    def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """(name, sorted labels) -> value, as Prometheus would read it."""
        from prometheus_client.parser import text_string_to_metric_families

        text = self.http.get("/metrics").text
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


@contextmanager
def operated(dsn: str, folder: Path, policy: str = POLICY, **more: str) -> Iterator[Operator]:
    """gatewayd with INDEXER_TOKEN set, on a port of its own."""
    with reserved_port() as port, gatewayd(dsn, folder, port, policy, **{"INDEXER_TOKEN": TOKEN, **more}) as running:
        operator = Operator(running, folder, port)
        with operator.http:
            yield operator
