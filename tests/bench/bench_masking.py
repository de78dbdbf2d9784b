"""What masking two of w3's six columns costs (1000 rows a call), by transform and path, against the same gatewayd without masks.

    .venv/bin/python -m tests.bench.bench_masking [--pairs 6] [--paths post_exec] [--masks partial …]

Two servers side by side, loaded in turns; a pair's two runs make one ratio, and the median over the pairs is printed. CPU is
that of gatewayd, of PostgreSQL, and of both together. Aims (issue 5): at most 1.40 with post_exec, 1.15 with source_rewrite.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.bench.run import postgresql
from tests.bench.servers import Database, Server, gatewayd, generator, running

PATHS = ("post_exec", "source_rewrite")
MASKS: Mapping[str, str] = {
    "full-redact": "note: full-redact, status: full-redact",
    "null-out": "note: null-out, status: null-out",
    "partial": "note: {t: partial, keepStart: 1, keepEnd: 4}, status: {t: partial, keepStart: 1}",
    "partial, glyph *": "note: {t: partial, keepEnd: 4, glyph: '*'}, status: {t: partial, glyph: '*'}",
    "consistent-hash": "note: consistent-hash, status: consistent-hash",
    "consistent-hash, all different": "note: consistent-hash, amount: consistent-hash",
    "pseudonymize": "note: {t: pseudonymize, kind: name}, status: {t: pseudonymize, kind: name}",
    "generalize": "amount: {t: generalize, granularity: 10}, placed_at: {t: generalize, granularity: month}",
    "noise, full-redact": "amount: {t: noise, ratio: 0.1}, note: full-redact",
}
FIGURES = ("gatewayd", "PostgreSQL", "both")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--paths", nargs="*", choices=PATHS, default=PATHS)
    parser.add_argument("--masks", nargs="*", choices=list(MASKS), default=list(MASKS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        with postgresql(folder / "pg") as database:
            plain = gatewayd(database, folder / "plain", "plain")
            with running(plain, folder / "plain.log") as pid:
                print("ms of CPU a call, unmasked → masked (median ratio of the pairs)")
                print(f"| path | masks | {' | '.join(FIGURES)} |\n|---|---|{'---:|' * len(FIGURES)}")
                for path in options.paths:
                    for name in options.masks:
                        server = masked(database, folder / f"{path}-{name}", path, MASKS[name])
                        with running(server, folder / "masked.log") as masked_pid:
                            pairs = measure([(plain, pid), (server, masked_pid)], database, options)
                            print(f"| {path} | {name} | {_cells(pairs)} |", flush=True)


def masked(database: Database, folder: Path, path: str, masks: str) -> Server:
    server = gatewayd(database, folder, "masked")
    rewriting = "true" if path == "source_rewrite" else "false"
    policy = f"table_access:\n  default: read\ncolumn_masks:\n  orders: {{{masks}}}\nmask_source_rewrite: {rewriting}\n"
    Path(server.environment["GATEWAY_POLICY_FILE"]).write_text(policy, encoding="utf-8")
    return msgspec.structs.replace(server, environment={**server.environment, "GATEWAY_MASK_SALT": "salt of the benchmark"})


def measure(servers: Sequence[tuple[Server, int]], database: Database, options: Any) -> list[list[dict[str, float]]]:
    """For each pair of runs the CPU of each server, in the order of `servers`."""
    pairs = []
    for turn in range(options.pairs + 1):
        step = 1 if turn % 2 else -1
        found = [_run(server, pid, database, options) for server, pid in servers[::step]][::step]
        if turn:  # the first turn only warms up
            pairs.append(found)
    return pairs


def _run(server: Server, pid: int, database: Database, options: Any) -> dict[str, float]:
    tool, arguments, more = server.calls["w3"]
    found = generator(
        [
            "--url", server.url, "--tool", tool, "--args", arguments, "--workload", "w3", *more, "--marker", "placed_at",
            "--clients", str(options.clients), "--seconds", str(options.seconds), "--warmup", "0.5",
            "--pid", str(pid), "--db-pid", str(database.pid), "--label", server.name,
        ]
    )  # fmt: skip
    if any(found[key] for key in ("tool_errors", "transport_errors", "row_mismatches")):
        raise SystemExit(f"{server.name} answered wrongly: {found.get('sample')}")
    gateway, postgres = found["server_cpu_s_per_1000"], found["db_cpu_s_per_1000"]
    return {"gatewayd": gateway, "PostgreSQL": postgres, "both": gateway + postgres}


def _cells(pairs: list[list[dict[str, float]]]) -> str:
    cells = []
    for key in FIGURES:
        ratio = statistics.median(masked[key] / plain[key] for plain, masked in pairs)
        before, after = (statistics.median(pair[index][key] for pair in pairs) for index in range(2))
        cells.append(f"{before:.2f} → {after:.2f} ({ratio:.2f}×)")
    return " | ".join(cells)


if __name__ == "__main__":
    main()
