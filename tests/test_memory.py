"""What glibc keeps and hands back, counted in a process of its own: its thresholds are the process's."""

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="thresholds of glibc")

MEASURES = """
import resource
from pathlib import Path
from gatewayd import process_memory as memory

MIB = 1024 * 1024

def fresh_pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def answer():
    return [b"x" * MIB for _ in range(5)]  # rows, two texts, UTF-8 and JSON
"""


def measured(script: str) -> int:
    done = subprocess.run([sys.executable, "-c", MEASURES + script], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_pages_of_answer_serve_the_next() -> None:
    rounds = """
memory.settle()
for _ in range(5):
    answer()
before = fresh_pages()
for _ in range(50):
    answer()
print(fresh_pages() - before)
"""
    assert measured(rounds) < 1000  # 5 MiB are 1280 pages, fifty times
    assert measured(rounds.replace("memory.settle()", "")) > 10_000, "glibc keeps them by itself now: settle() need not"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_pages_of_flood_are_handed_back() -> None:
    grown = measured("""
memory.settle()
tide = memory.Tide()
before = resident_bytes()
flood = [answer() for _ in range(20)]
last = b"x" * MIB  # a block in use at the end of the heap
tide.rises(100 * MIB)
flood.clear()
tide.ebbs()
print(resident_bytes() - before)
""")
    assert grown < 10 * 1024 * 1024
