"""What the random run breaks: the network between a gateway and a real control plane, the gateway's clock, and its files."""

import mmap
import shutil
import sqlite3
import struct
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import msgspec

from gatewayd.keys.envelope import parse
from gatewayd.link.formats.requests import PATHS, LinkRequest, read_body
from gatewayd.link.formats.status import PollBody
from tests.link.stand_in import Answer

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The wall clock stands as many milliseconds off as the file $CLOCK_OFF holds, from one call to the next. */
static int64_t off_ms(void) {
    static volatile int64_t *held;
    if (!held) {
        const char *path = getenv("CLOCK_OFF");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        static int64_t none;
        void *found = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
        held = found == MAP_FAILED ? &none : (volatile int64_t *)found;
        if (file >= 0) close(file);
    }
    return *held;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += off_ms() / 1000;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found)) return (time_t)-1;
    if (told) *told = found.tv_sec;
    return found.tv_sec;
}
"""


class SteppedClock:
    """`variables` give a process a wall clock that `step` moves while it runs. Timers and deadlines stay as they are."""

    def __init__(self, folder: Path) -> None:
        source, library = folder / "clock.c", folder / "clock.so"
        source.write_text(CLOCK, encoding="ascii")
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        place = folder / "clock_off"
        place.write_bytes(bytes(8))
        with place.open("r+b") as file:
            self._held = mmap.mmap(file.fileno(), 8)
        self.variables = {"LD_PRELOAD": str(library), "CLOCK_OFF": str(place)}

    def step(self, off_ms: int) -> None:
        self._held[:8] = struct.pack("<q", off_ms)


class Passing:
    """Passes requests on to a control plane that may be away, and notes which bundle the gateway has told that it enforces."""

    def __init__(self, url: str) -> None:
        self.changed = threading.Condition()
        self.enforced = 0
        self.polls = 0
        self._client = httpx.Client(base_url=url, timeout=120, trust_env=False)

    def handle(self, path: str, data: bytes) -> Answer | None:
        if path == PATHS["poll"]:
            self._note(data)
        try:
            answer = self._client.post(path, content=data, headers={"content-type": "application/json"})
        except httpx.HTTPError:
            return None
        return answer.status_code, answer.content

    def _note(self, data: bytes) -> None:
        body = read_body(read_body(parse(data).payload, LinkRequest).body, PollBody)
        with self.changed:
            self.polls += 1
            if body.state == "enforcing":
                self.enforced = max(self.enforced, body.version)
            self.changed.notify_all()


class Files:
    """The gateway's folder: an audit file and a state folder, and the copies that were made of them."""

    def __init__(self, place: Path) -> None:
        self.folder, self._copies = place / "gateway", place / "copies"
        self.folder.mkdir()
        self._copies.mkdir()
        self.count = 0

    def back_up(self) -> None:
        """All of it, as it stands: after a SIGKILL with the write-ahead log as it was."""
        shutil.copytree(self.folder, self._copies / str(self.count))
        self.count += 1

    def restore(self, copy: int, *, audit: bool, state: bool) -> None:
        source = self._copies / str(copy)
        if audit:
            for each in self.folder.glob("audit.db*"):
                each.unlink()
            for each in source.glob("audit.db*"):
                if not each.name.endswith("-shm"):
                    shutil.copy(each, self.folder)
        if state:
            shutil.rmtree(self.folder / "state")
            shutil.copytree(source / "state", self.folder / "state")

    def rows(self) -> list[dict[str, Any]]:
        """All rows of the audit file, in the order of their seq."""
        with closing(sqlite3.connect(self.folder / "audit.db")) as file:
            file.row_factory = sqlite3.Row
            found = [dict(row) for row in file.execute("SELECT * FROM audit_events ORDER BY seq")]
        return [row | {"payload": msgspec.json.decode(row["payload"])} for row in found]
