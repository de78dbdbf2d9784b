"""`make pictures`: every page of the console into docs/pictures/, light and dark, 1280 and 390 wide. A person looks at them
before they are committed."""

import base64
import os
import sys
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Page, sync_playwright

from tests.conftest import reserved_port
from tests.console.alone import postgres_alone
from tests.console.chromium import ARGUMENTS, MISSING, chromium
from tests.console.desk import Desk
from tests.console.pages import PAGES
from tests.console.running import running
from tests.console.world import World

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
HIGHEST: Final = 1800
"""Pixels: of a long page, its beginning."""
QUALITY: Final = 80
WIDTHS: Final = (1280, 390)
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def main(only: list[str]) -> None:
    """`only`: names of pages; none: all."""
    program = chromium()
    if program is None:
        print(f"docs/pictures/ stays as it is: {MISSING}", file=sys.stderr)
        return
    with (
        postgres_alone() as (postgres, folder),
        reserved_port() as port,
        running(postgres, port, folder, with_hostile=False) as world,
    ):
        _draw(world, program, only)


def _draw(world: World, program: str, only: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        desk = Desk(world, browser)
        for case in PAGES:
            if not case.picture or (only and case.name not in only):
                continue
            page = desk.page(case.who, color_scheme="light")
            page.goto(world.path(case.path))
            for width in WIDTHS:
                for scheme in SCHEMES:
                    page.set_viewport_size({"width": width, "height": 800})
                    page.emulate_media(color_scheme=scheme)
                    _take(page, FOLDER / f"{case.name}-{scheme}-{width}.webp", width)
            page.context.close()
        browser.close()


def _take(page: Page, path: Path, width: int) -> None:
    height = min(page.evaluate("document.documentElement.scrollHeight"), HIGHEST)
    page.set_viewport_size({"width": width, "height": height})  # so that what sticks to the window is drawn once
    shot = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    os.umask(0o022)
    main(sys.argv[1:])
