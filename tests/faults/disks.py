"""Disks that fail on demand under a running gatewayd: full, read-only, unable to grow a file, waiting for an fsync."""

import contextlib
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* While the file $SLOW_FSYNC is there an fsync waits: as many seconds as its name's file says, or until it is gone. */
static void wait_for_the_disk(void) {
    const char *flag = getenv("SLOW_FSYNC"), *told = getenv("SLOW_FSYNC_BEGUN");
    char seconds[16] = {0};
    int file;
    if (!flag || (file = open(flag, O_RDONLY)) < 0) return;
    if (read(file, seconds, sizeof seconds - 1) < 0) seconds[0] = 0;
    close(file);
    if (told && (file = open(told, O_WRONLY | O_CREAT, 0600)) >= 0) close(file);
    if (seconds[0]) sleep(atoi(seconds));
    else while (access(flag, F_OK) == 0) usleep(10000);
}

int fsync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_for_the_disk();
    return real(file);
}

int fdatasync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_for_the_disk();
    return real(file);
}
"""


class SlowDisk:
    """`variables` make a process's every fsync wait while `flag` exists."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            pytest.skip("a C compiler, which makes the slow fsync, is not installed")
        source, library = folder / "slow_fsync.c", folder / "slow_fsync.so"
        source.write_text(SHIM, encoding="ascii")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.flag, self.begun = folder / "slow", folder / "begun"
        self.variables = {"LD_PRELOAD": str(library), "SLOW_FSYNC": str(self.flag), "SLOW_FSYNC_BEGUN": str(self.begun)}

    @contextmanager
    def waits(self, seconds: str = "") -> Iterator[None]:
        """Each fsync takes `seconds`, or until the end of the block. `begun` appears when the first one waits."""
        self.begun.unlink(missing_ok=True)
        self.flag.write_text(seconds, encoding="ascii")
        try:
            yield
        finally:
            self.flag.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 2 MiB at `folder`/disk."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not a byte is free on a small disk, nor becomes free: what SQLite deletes keeps its room under a second name."""
    kept = disk / "kept"
    kept.mkdir()
    for left in (*disk.glob("*-wal"), *disk.glob("*-shm")):
        (kept / left.name).hardlink_to(left)
    ballast = kept / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        shutil.rmtree(kept)


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Nobody may have a file open for writing there."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@contextmanager
def no_file_grows(pid: int) -> Iterator[None]:
    """Every write past the first 4 KiB of a file fails in this process: a full disk for anybody who may not mount one."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
