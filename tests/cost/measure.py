"""What one text costs: a forked process takes it through everything that happens to a statement before it is sent.

Forked, so that memory is counted from the same start for each text, and a text that never ends can be ended.
"""

import gc
import os
import resource
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from gatewayd.fairness.large_texts import NO_FULL_COLLECTION, SWITCH_S

CPU_S: Final = 20
"""After so much the process ends, and the text has cost that."""
_TICK_S: Final = 0.0002


class Cost(msgspec.Struct, frozen=True):
    cpu_s: float
    """Of the thread that works."""
    held_s: float
    """The most processor time of that thread between two turns of the loop's: how long the interpreter was held."""
    grown_mib: float
    verdict: str = ""


def measured(work: Callable[[], str]) -> Cost:
    """Runs `work` in a forked process, in a thread of it. The process has no other threads when this is called."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
            os.write(write, msgspec.json.encode(_here(work)))
        finally:
            os._exit(0)
    os.close(write)
    answer = b"".join(_all_of(read))
    os.close(read)
    _, _, usage = os.wait4(child, 0)
    if answer:
        return msgspec.json.decode(answer, type=Cost)
    return Cost(usage.ru_utime + usage.ru_stime, 0, usage.ru_maxrss / 1024, "ended")


def _all_of(pipe: int) -> Iterator[bytes]:
    while select.select([pipe], [], [])[0] and (data := os.read(pipe, 65536)):
        yield data


def _here(work: Callable[[], str]) -> Cost:
    gc.set_threshold(*gc.get_threshold()[:2], NO_FULL_COLLECTION)
    sys.setswitchinterval(SWITCH_S)
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before = _memory("VmRSS")
    ends: list[tuple[float, str]] = []
    started, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=partial(_worked, work, started, done, ends))
    thread.start()
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    started.set()
    held = last = 0.0
    while not ends:
        time.sleep(_TICK_S)
        now = time.clock_gettime(clock)
        held, last = max(held, now - last), now
    done.set()
    thread.join()
    return Cost(ends[0][0], held, _memory("VmHWM") - before, ends[0][1])


def _worked(work: Callable[[], str], started: threading.Event, done: threading.Event, ends: list[tuple[float, str]]) -> None:
    started.wait()
    began = time.thread_time()
    try:
        verdict = work()
    except Exception as bug:
        verdict = f"raised {bug!r}"
    ends.append((time.thread_time() - began, verdict))
    done.wait()


def _memory(field: str) -> float:
    with open("/proc/self/status") as status:
        [line] = (line for line in status if line.startswith(field))
    return int(line.split()[1]) / 1024
