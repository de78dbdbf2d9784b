"""The browser of these tests: Debian's chromium-headless-shell, or what CHROMIUM names. It talks to nobody but us."""

import os
import shutil
from typing import Final

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--font-render-hinting=none",
    *(("--no-sandbox",) if os.geteuid() == 0 else ()),  # root has no user namespace to put it in
)
MISSING: Final = "no Chromium: set CHROMIUM, or install Debian's chromium-headless-shell"


def chromium() -> str | None:
    """The program, None where there is none."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for found in map(shutil.which, NAMES) if found), None)
