"""Somebody before the console: opens pages as a person of the world, and keeps what the browser complains of."""

from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Response, TimeoutError, ViewportSize

from tests.console.world import World

WIDE: Final[ViewportSize] = {"width": 1280, "height": 900}
NARROW: Final[ViewportSize] = {"width": 360, "height": 740}
MOST_BYTES: Final = 1_000_000
AGAIN: Final = 90
AXE: Final = """async (options) => {
  const part = (each) => [each.tagName, each.getAttribute("class"), each.getAttribute("role"), each.childElementCount > 0,
    each.textContent.trim() !== "", each.getAttributeNames().join()].join(" ");
  const form = (each) => [...new Set([each, ...each.querySelectorAll("*")].map(part))].sort().join();
  const taken = [];
  for (const parent of document.querySelectorAll("main *")) {
    if (parent.childElementCount <= 12) continue;
    const seen = new Map();
    for (const child of [...parent.children]) {
      const what = form(child), number = (seen.get(what) || 0) + 1;
      seen.set(what, number);
      if (number <= 2) continue;
      const place = document.createComment("");
      child.replaceWith(place);
      taken.push([place, child]);
    }
  }
  const found = await axe.run(document, options);
  for (const [place, child] of taken) place.replaceWith(child);
  return found.violations;
}"""
"""Runs it on a page whose long lists have two of each kind of row: of the same elements, classes and attributes. Contrast takes
it a hundredth of a second an element, and more the more there are."""


class Desk:
    def __init__(self, world: World, browser: Chromium) -> None:
        self.world: Final = world
        self._browser: Final = browser
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []
        """Console errors, uncaught errors, violations of the CSP, answers of 500 and above."""

    def page(self, who: str | None = "ada", **options: Any) -> Page:
        """A fresh window, signed in as `who` (None: nobody). `options` as Playwright's `new_context` has them."""
        context = self._browser.new_context(viewport=options.pop("viewport", WIDE), base_url=self.world.url, **options)
        self._contexts.append(context)
        if who is not None:
            name, value = self.world.cookies[who]
            context.add_cookies([{"name": name, "value": value, "url": self.world.url}])
        page = context.new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("response", self._response)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        # An answer of 400 and above is told as an error, too, and is often what a test wants.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.location.get('url')}: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.url}: {response.status}")

    def leave(self) -> None:
        for context in self._contexts:
            context.close()
        assert self.complaints == []


def until_shown(page: Page, what: Locator) -> None:
    """Loads the page again until `what` is on it: what a gateway tells the console by itself comes within seconds."""
    for _ in range(AGAIN):
        try:
            what.wait_for(timeout=1_000)
            return
        except TimeoutError:
            page.reload()
    what.wait_for(timeout=1_000)


def axe_findings(page: Page, *rules: str) -> list[str]:
    """What axe finds by these rules, or by all of them, best practices among them: one line a rule and element. Of rows that are
    alike it looks at two."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate(AXE, options)
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def sideways(page: Page) -> list[str]:
    """What is wider than the window: the elements that stick out."""
    script = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
      .filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5).map((each) => each.outerHTML.slice(0, 120))"""
    found: list[str] = page.evaluate(script)
    return found
