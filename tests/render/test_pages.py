"""Every page, in a browser: all of it can be read, at any width and in either scheme, offline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support import benched, browsing, certified, inspecting
from tests.support.browsing import CONTRAST, CONTRASTS, CUT_OFF, HEADINGS, SCHEMES, WIDTHS
from tritonlab.course import course
from tritonlab.render import pages
from tritonlab.workspace.workspace import Workspace

pytestmark = pytest.mark.course

SOFTMAX = course.load().find("track1/softmax")
LESSONS = {f"lesson of {module.id}": module for module in course.load().modules}


def benchmark(name: str, measured: bool) -> str:
    module = next(m for m in course.load().modules if str(m.suite.parent).endswith(name))
    return pages.benchmark(module, benched.benchmark(name, measured=measured))


MAKE: dict[str, Callable[[Path], str]] = {
    "inspection": lambda _: pages.inspection(SOFTMAX, inspecting.softmax()),
    "inspection with defects": lambda _: pages.inspection(SOFTMAX, inspecting.column_major()),
    "benchmark": lambda _: benchmark("missing-elements/03-softmax", True),
    "prediction": lambda _: benchmark("mastery/01-custom-kernels", False),
    "certificate of everything": lambda _: pages.certificate(
        certified.everything(), "c.html"),
    "certificate of little": lambda _: pages.certificate(certified.beginner(), "c.html"),
    "certificate of nothing": lambda _: pages.certificate(
        certified.certificate((), None, ("Line 3 of the journal is damaged; only that record is "
                                         "lost.",)), "a file with a long name " * 5),
    "report": lambda folder: pages.report(certified.progress(Workspace(folder))),
    "report of a year": lambda folder: pages.report(
        certified.progress(Workspace(folder / "year"), 365, benched=False)),
    "report of nothing": lambda folder: pages.report(
        certified.progress(Workspace(folder / "nothing"), 0, benched=False)),
    **{name: lambda _, module=module: pages.lesson(
        module.id, module.title, module.lesson(), module.picture())
       for name, module in LESSONS.items()},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing.browser() as made:
        yield made


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def path_of(name: str) -> Path:
        path = folder / f"{name.replace('/', '-')}.html"
        if not path.exists():
            path.write_text(MAKE[name](folder), encoding="utf-8")
        return path

    return path_of


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MAKE)
def test_all_of_a_page_can_be_read(browser, page_of, name, width):
    with browsing.opened(browser, page_of(name), width) as seen:
        across = seen.page.evaluate("document.documentElement.scrollWidth")
        cut_off = seen.page.evaluate(CUT_OFF)
        contrasts = {}
        for scheme in SCHEMES:
            seen.page.emulate_media(color_scheme=scheme)
            contrasts[scheme] = seen.page.evaluate(CONTRASTS)

    assert (seen.requests, seen.complaints) == ([], [])
    assert across <= width
    assert cut_off == []
    assert contrasts["light"] != contrasts["dark"]
    assert [pair for found in contrasts.values() for pair in found if pair[0] < CONTRAST] == []


@pytest.mark.parametrize("name", MAKE)
def test_headings_go_down_one_by_one_and_tables_have_heads(browser, page_of, name):
    with browsing.opened(browser, page_of(name)) as seen:
        levels = seen.page.evaluate(HEADINGS)
        headless = seen.page.evaluate(
            "[...document.querySelectorAll('table')].filter(one => !one.querySelector('th'))"
            ".length")
        nameless = seen.page.evaluate(
            "[...document.querySelectorAll('svg, img')].filter(one => !one.ariaLabel && !one.alt)"
            ".length")

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert (headless, nameless) == (0, 0)


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize("name", [name for name in MAKE if name.startswith("certificate")])
def test_a_certificate_is_one_sheet_and_all_of_it_is_there(browser, page_of, name, paper):
    with browsing.opened(browser, page_of(name), scheme="dark") as seen:
        sheets_ = browsing.printed(seen.page, paper)

    assert len(sheets_) == 1
    assert "How to verify it" in sheets_[0]
    assert "Made by tritonlab" in sheets_[0]


def test_the_sheet_of_everything_holds_all_26_modules(browser, page_of):
    with browsing.opened(browser, page_of("certificate of everything")) as seen:
        [sheet] = browsing.printed(seen.page, "Letter")

    assert sheet.count("source ") == 26
    assert all(f"{entry.source_sha256[:12]}" in sheet for entry in certified.everything().entries)


def test_many_versions_and_longer_titles_still_are_one_sheet(browser, tmp_path):
    made = certified.everything("A title as long as any title of a module is, and then a bit more",
                                settings=8)
    (tmp_path / "c.html").write_text(pages.certificate(made, "certificate.html"))

    with browsing.opened(browser, tmp_path / "c.html") as seen:
        assert [len(browsing.printed(seen.page, paper)) for paper in ("A4", "Letter")] == [1, 1]


@pytest.mark.parametrize("name", ["certificate of little", "report", "benchmark", "inspection",
                                  "lesson of track1/softmax"])
def test_print_is_dark_on_light_whatever_the_screen_is(browser, page_of, name):
    with browsing.opened(browser, page_of(name), scheme="dark") as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        colour, contrasts = seen.page.evaluate(
            "getComputedStyle(document.body).color"), seen.page.evaluate(CONTRASTS)

    assert colour == "rgb(31, 35, 40)"
    assert contrasts[0][0] >= CONTRAST


LESSON = "lesson of track1/softmax"


@pytest.mark.parametrize("name", LESSONS)
def test_every_section_of_a_lesson_is_in_its_contents(browser, page_of, name):
    with browsing.opened(browser, page_of(name)) as seen:
        listed = seen.page.evaluate(
            "[...document.querySelectorAll('.contents a')].map(one => [one.hash, one.innerText])")
        sections = seen.page.evaluate(
            "[...document.querySelectorAll('h2')].map(one => ['#' + one.id,"
            " one.firstChild.textContent.trim()])")
        anchors = seen.page.evaluate(
            "[...document.querySelectorAll('.anchor')].filter("
            "one => one.parentElement.id !== decodeURIComponent(one.hash.slice(1))).length")

    assert [hash_ for hash_, _ in listed] == [hash_ for hash_, _ in sections]
    assert len({hash_ for hash_, _ in listed}) == len(listed) > 3
    assert anchors == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_section_is_reached_from_the_contents_by_mouse_and_keyboard(browser, page_of, width):
    with browsing.opened(browser, page_of(LESSON), width) as seen:
        seen.page.click(".contents a >> text=Pitfalls")
        clicked = seen.page.evaluate("[location.hash, document.querySelector('#pitfalls')"
                                     ".getBoundingClientRect().top < innerHeight]")
        seen.page.focus(".contents a >> text=Your task")
        seen.page.keyboard.press("Enter")
        entered = seen.page.evaluate("location.hash")

    assert clicked == ["#pitfalls", True]
    assert entered == "#your-task"


@pytest.mark.parametrize("width", WIDTHS)
def test_code_is_copied_by_mouse_and_keyboard(browser, page_of, width):
    with browsing.opened(browser, page_of(LESSON), width) as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        blocks, buttons = (seen.page.locator(f".copied {name}") for name in ("code", "button"))
        texts = blocks.all_inner_texts()
        copied = []
        for number in range(len(texts)):
            if number % 2:
                buttons.nth(number).focus()
                seen.page.keyboard.press("Enter")
            else:
                buttons.nth(number).click()
            copied.append(seen.page.evaluate("navigator.clipboard.readText()"))
        label = buttons.last.inner_text()

    assert copied == texts
    assert len(texts) >= 2
    assert label == "Copied"
    assert seen.complaints == []


def test_code_has_a_color_for_each_kind_of_token(browser, page_of):
    with browsing.opened(browser, page_of("lesson of track1/matrix-mul")) as seen:
        colors = seen.page.evaluate(
            "[...document.querySelectorAll('pre span')].map(one => [one.className,"
            " getComputedStyle(one).color])")

    assert {kind for kind, _ in colors} >= {"comment", "keyword", "number"}
    assert len({color for _, color in colors}) == len({kind for kind, _ in colors})


# ------------------------------------------------------------ the checks notice what they are for


@pytest.mark.parametrize(("body", "said"), [
    ("<p style='width: 2000px'>" + "far " * 300 + "</p>", "far far"),
    ("<div style='width: 50px; overflow: hidden; white-space: nowrap'>cut off here</div>", "cut"),
    ("<svg viewBox='0 0 100 20' width='100'><text x='90' y='15'>beyond</text></svg>", "beyond"),
])
def test_text_that_is_cut_off_is_noticed(browser, tmp_path, body, said):
    (tmp_path / "p.html").write_text(f"<!doctype html><meta charset=utf-8>{body}")

    with browsing.opened(browser, tmp_path / "p.html", 400) as seen:
        assert [text for text in seen.page.evaluate(CUT_OFF) if said in text]


def test_text_that_is_hard_to_see_is_noticed(browser, tmp_path):
    (tmp_path / "p.html").write_text("<!doctype html><p style='color: #888; background: #fff'>grey"
                                     "<p style='color: #111; background: #fff8'>black")

    with browsing.opened(browser, tmp_path / "p.html") as seen:
        (low, grey), (high, _) = seen.page.evaluate(CONTRASTS)

    assert (low, grey) == (pytest.approx(3.54, abs=0.02), "grey")
    assert high > 15


def test_text_of_a_drawing_is_held_against_the_shape_below_it(browser, tmp_path):
    (tmp_path / "p.html").write_text(
        "<!doctype html><svg viewBox='0 0 100 20' fill='#888'><g><path d='M0 0H50V20H0Z'/></g>"
        "<g><text x='5' y='15'>in</text><text x='60' y='15'>out</text></g></svg>")

    with browsing.opened(browser, tmp_path / "p.html") as seen:
        assert seen.page.evaluate(CONTRASTS) == [[1, "in"], [pytest.approx(3.54, abs=0.02), "out"]]


def test_requests_and_complaints_are_noticed(browser, tmp_path):
    (tmp_path / "p.html").write_text("<!doctype html><img src='http://localhost:9/x.png'>"
                                     "<script>console.error('no')</script>")

    with browsing.opened(browser, tmp_path / "p.html") as seen:
        assert "http://localhost:9/x.png" in seen.requests
        assert "no" in seen.complaints


def test_two_sheets_are_counted(browser, page_of, tmp_path):
    text = page_of("certificate of everything").read_text()
    (tmp_path / "p.html").write_text(text.replace(
        "</footer>", "</footer><div style='height: 40mm'></div>End"))

    with browsing.opened(browser, tmp_path / "p.html") as seen:
        assert len(browsing.printed(seen.page, "Letter")) == 2


def test_a_name_is_text_in_the_page_of_a_certificate(browser, tmp_path):
    made = replace(certified.beginner(), name="<img src=x onerror=alert(1)></script><b>Ada")
    (tmp_path / "c.html").write_text(pages.certificate(made, "c.html"))

    with browsing.opened(browser, tmp_path / "c.html") as seen:
        assert seen.page.inner_text("h1") == made.name
        assert (seen.requests, seen.complaints) == ([], [])
