"""What a process holds, as Linux shows it."""

from pathlib import Path


def resources(pid: int) -> tuple[int, int]:
    """Resident KiB and open descriptors of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return resident, len(list(Path(f"/proc/{pid}/fd").iterdir()))
