"""The result of verifying an audit file: faults, which gatewayd itself never causes, and notes about limits of the proof.
Pure."""

from typing import Literal

import msgspec


class AuditFinding(msgspec.Struct, frozen=True):
    """One finding. `seq` and `ts` (milliseconds) name its row, if there is one; `meaning` names possible causes."""

    kind: Literal["fault", "note"]
    what: str
    meaning: str = ""
    seq: int | None = None
    ts: int | None = None


class FileVerdict(msgspec.Struct, frozen=True):
    """The findings in order, and how much was verified. `signed` is the number of rows under a valid head."""

    findings: tuple[AuditFinding, ...]
    rows: int
    first_seq: int
    last_seq: int
    signed: int
    heads: int
    instances: int
    more_faults: int = 0  # beyond the ones that are listed

    @property
    def faults(self) -> int:
        return sum(finding.kind == "fault" for finding in self.findings) + self.more_faults

    @property
    def sentence(self) -> str:
        """All of it in one plain sentence."""
        rows = f"{self.rows} row{'' if self.rows == 1 else 's'}"
        if self.faults:
            return f"NOT INTACT: {self.faults} fault{'' if self.faults == 1 else 's'} in {rows}"
        return f"intact: {rows}, {self.signed} of them under {self.heads} signed heads of {self.instances} instance(s)"
