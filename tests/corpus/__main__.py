"""`python -m tests.corpus`: decide every row, print cases, mismatches and time. `--write` fills in the golden reasons.

`--write` touches rows that are denied by the rule they name; a row that passes, or another rule, stays a mismatch.
"""

import sys
import time
from pathlib import Path

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.outcomes import Denied
from tests.corpus.corpus import AllowFile, Deny, DenyFile, allow_files, decided, deny_files, mismatch
from tests.corpus.server import catalogs_of, running
from tests.corpus.written import text_of


def main(arguments: list[str]) -> int:
    with running() as server:
        catalogs = catalogs_of(server)
    catalog = catalogs["sample"]
    if "--write" in arguments:
        for path, file in deny_files().items():
            _write(path, file, catalog)
    started = time.perf_counter()
    files: dict[Path, DenyFile | AllowFile] = {**deny_files(), **allow_files()}
    cases = mismatches = 0
    for path, each in files.items():
        for row in each.rows:
            cases += 1
            wrong = mismatch(row, catalogs[each.database] if isinstance(each, AllowFile) else catalog)
            if wrong:
                mismatches += 1
                print(f"{path.parent.name}/{path.name}: [{row.policy}] {row.statement[:300]!r}\n    {wrong}")
    print(f"corpus: {cases} cases, {mismatches} mismatches, {time.perf_counter() - started:.2f} s")
    return 1 if mismatches else 0


def _write(path: Path, file: DenyFile, catalog: Catalog) -> None:
    rows: list[Deny] = []
    for row in file.rows:
        decision = decided(row, catalog)
        right = isinstance(decision, Denied) and decision.policy_rule == row.rule
        rows.append(msgspec.structs.replace(row, reason=decision.reason) if isinstance(decision, Denied) and right else row)
    path.write_text(text_of(msgspec.structs.replace(file, rows=rows)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
