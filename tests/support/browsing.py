"""A browser for tests: Chromium without a window, and what is wrong with a page that it shows."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pypdf import PdfReader

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
MARGINS = {"top": "10mm", "bottom": "10mm", "left": "12mm", "right": "12mm"}
CONTRAST = 4.5  # the least between a text and what lies behind it, after WCAG 2 level AA
# Both look at every run of text that is laid out.
_TEXTS = """
const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (!node.data.trim() || parent.closest('script, style, title')) continue;
  if (parent.checkVisibility({visibilityProperty: true})) texts.push(node);
}
const shown = node => node.data.trim().replace(/\\s+/g, ' ').slice(0, 60);
"""
# Text that no scrolling brings into view: beyond the window, or beyond an ancestor that clips it.
CUT_OFF = "() => {" + _TEXTS + """
return texts.filter(node => {
  const range = document.createRange();
  range.setStart(node, node.data.search(/\\S/));  // spaces may hang over an edge
  range.setEnd(node, node.data.trimEnd().length);
  return [...range.getClientRects()].some(box => {
    if (!box.width || !box.height) return false;
    for (let at = node.parentElement; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at), frame = at.getBoundingClientRect();
      if (style.clipPath !== 'none') return false;  // hidden on purpose, and read aloud
      if (/auto|scroll/.test(style.overflowX)) return false;
      const clips = /hidden|clip/.test(style.overflowX)
        && (style.display !== 'inline' || at.tagName === 'svg');
      if (clips && (box.right > frame.right + 1 || box.left < frame.left - 1
                    || box.bottom > frame.bottom + 2 || box.top < frame.top - 2)) return true;
    }
    return box.right > innerWidth + 1 || box.left < -1;
  });
}).map(shown);
}"""
# The contrast of each text with the colours behind it, laid over each other; the worst first.
CONTRASTS = "() => {" + _TEXTS + """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
canvas.canvas.width = canvas.canvas.height = 1;
const rgba = color => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
const light = color => {
  const [r, g, b] = color.map(c => c / 255).map(
    c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const shapes = element => {  // drawn before a text of an SVG, below its middle; the topmost first
  const text = element.getBoundingClientRect();
  const x = (text.left + text.right) / 2, y = (text.top + text.bottom) / 2;
  return [...element.closest('svg').querySelectorAll('path, rect, circle, use')].filter(shape => {
    const box = shape.getBoundingClientRect();
    return shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING
      && !shape.closest('defs') && getComputedStyle(shape).fill !== 'none'
      && box.left < x && x < box.right && box.top < y && y < box.bottom;
  }).map(shape => {
    const style = getComputedStyle(shape), [r, g, b, a] = rgba(style.fill);
    return [r, g, b, a * style.opacity];
  }).reverse();
};
const behind = element => {
  const layers = element.closest('svg') ? shapes(element) : [];
  for (let at = element; at; at = at.parentElement)
    layers.push(rgba(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
};
return texts.map(node => {
  const parent = node.parentElement, style = getComputedStyle(parent), back = behind(parent);
  const color = rgba(parent.closest('svg') ? style.fill : style.color);
  const [high, low] = [light(over(color, back)), light(back)].sort((a, b) => b - a);
  return [Math.round((high + 0.05) / (low + 0.05) * 100) / 100, shown(node)];
}).sort((a, b) => a[0] - b[0]);
}"""
HEADINGS = """() => [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')]
  .filter(one => one.checkVisibility()).map(one => Number(one.tagName[1]))"""


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Chromium; where there is none, the test is skipped."""
    with sync_playwright() as driver:
        path = next(filter(None, map(shutil.which, NAMES)), None) or driver.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("no Chromium is installed here; `apt-get install chromium` brings one")
        made = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()


@dataclass(frozen=True)
class Seen:
    """A page that is shown, and what has happened so far.

    ``requests`` are all but that for the page itself, ``complaints`` what is on the console.
    """

    page: Page
    requests: list[str]
    complaints: list[str]


@contextlib.contextmanager
def opened(made: Browser, path: Path, width: int = 1280, scheme: str = "light") -> Iterator[Seen]:
    """A page without network, all that can be unfolded unfolded."""
    context = made.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme,
                               offline=True)
    url = path.absolute().as_uri()
    try:
        seen = Seen(context.new_page(), [], [])
        seen.page.on("request", lambda request: seen.requests.extend({request.url} - {url}))
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(url)
        seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        yield seen
    finally:
        context.close()


def printed(page: Page, paper: str) -> list[str]:
    """The text of each sheet on which a page is printed, ``A4`` or ``Letter``."""
    made = page.pdf(format=paper, margin=MARGINS, print_background=True)
    return [sheet.extract_text() for sheet in PdfReader(io.BytesIO(made)).pages]
