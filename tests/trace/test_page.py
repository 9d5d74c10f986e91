"""The page of a trace in a browser: what it shows, and every control by mouse and keyboard."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from grader.trace import trace
from tests.support import browsing
from tests.support.browsing import CONTRAST, CONTRASTS, CUT_OFF, HEADINGS, SCHEMES, WIDTHS, Seen
from tritonlab.course import course
from tritonlab.grading.grade import suite_of
from tritonlab.trace.page import page

pytestmark = pytest.mark.course

COURSE = course.load()
NONE = ("", "")
# Of each page: its module, what is changed in the solution, and the case.
PAGES = {
    "padding": ("track1/softmax", (', other=-float("inf"))', ")"), "127 floats"),
    "swapped strides": (
        "track1/matrix-mul", ("[:, None] * stride_bk + offs_n[None, :] * stride_bn",
                              "[:, None] * stride_bn + offs_n[None, :] * stride_bk"), None),
    "out of bounds": ("track1/vector-add", ("y_ptr + offs, mask=mask", "y_ptr + offs"), None),
    "two programs": (
        "track1/vector-add", ("tl.store(out_ptr + offs", "tl.store(out_ptr + offs // 2048"), None),
    "tile": ("track1/tile-copy", NONE, None),
    "sum": ("track1/vector-add", NONE, None),
    "product": ("track1/matrix-mul", NONE, "17 x 200 times 200 x 5"),
    "launches": ("track2/fp8-matmul", NONE, None),
    "cut": ("track1/matrix-mul", ("        a_ptrs += a_step\n", ""),
            "300 x 1 000 times 1 000 x 20 in float16"),
    "padded store": (
        "track2/tiling", ("tl.store(out_ptrs, tile", "tl.store(out_ptrs, "
                          "tl.reshape(tl.trans(tile), (BLOCK_M, BLOCK_N))"), None),
    "race": ("track3/memory-debugging", (
        "    tl.atomic_add(counts_ptr + value, 1, mask=mask, sem=\"relaxed\")",
        "    seen = tl.load(counts_ptr + value, mask=mask)\n"
        "    tl.store(counts_ptr + value, seen + 1, mask=mask)"),
        "bincount: 5 000 values, 10 bins"),
    "wrong bound": ("track1/one-step-matmul", ("offs_k[None, :] < K", "offs_k[None, :] >= 0"),
                    "100 x 50 times 50 x 150"),
    "helper": ("track2/two-phase-reduction", NONE, "sum_two_phase: 1023 floats"),
    "scattered": ("track1/tile-copy", (
        "tl.store(out_ptrs, tile,",
        "beyond = offs_m[:, None] * offs_n[None, :] // 700\n"
        "    tl.store(out_ptrs, tile + beyond * offs_m[:, None],"),
        "100 x 150 floats"),
    "several lines": ("track4/torch-compile", NONE, "rmsnorm_gelu_linear: 64 x 32 into 48"),
    "shared stores": ("track1/tile-copy", ("pid_n = tl.program_id(axis=1)",
                                           "pid_n = tl.program_id(axis=0)"), None),
}
MAX_PAGE = 2_000_000
STEP_MS = 50

_KEYS = ["ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp", "a", "a", "v", "v"] * 2
# Presses keys, each one after the last is drawn.
_STEPS = """async keys => {
  for (const key of keys) {
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  }
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing.browser() as one:
        yield one


@pytest.fixture(scope="session")
def file_of(sandbox, tmp_path_factory) -> Callable[..., Path]:
    """The file of a page, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("traces")

    def path_of(name: str) -> Path:
        path = folder / f"{name.replace('/', '-')}.html"
        if not path.exists():
            module_name, (old, new), case = PAGES.get(name, (name, NONE, None))
            module = COURSE.find(module_name)
            text, kernel = module.solution.read_text(), module.solution
            if old:
                assert old in text
                shutil.copytree(module.solution.parent, path.with_suffix(""))
                kernel = path.with_suffix("") / module.solution.name
                kernel.write_text(text.replace(old, new))
            traced = trace(kernel, suite_of(module), sandbox=sandbox, case=case)
            path.write_text(page(traced.to_dict(), module.title), encoding="utf-8")
        return path

    return path_of


@pytest.fixture
def shown(browser, file_of) -> Callable[..., AbstractContextManager[Seen]]:
    """A page that is drawn; nothing may be on the console or requested by the end."""

    @contextmanager
    def show(name: str, width: int = 1280) -> Iterator[Seen]:
        with browsing.opened(browser, file_of(name), width) as seen:
            seen.page.wait_for_selector("body[data-ready]")
            yield seen
            assert (seen.requests, seen.complaints) == ([], [])

    return show


def here(page: Page) -> str:
    return page.inner_text("#here")


def line_and_program(page: Page) -> tuple[int, int]:
    line, program = re.match(r"Line (\d+), program (\d+)", here(page)).groups()
    return int(line), int(program)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_all_of_a_page_can_be_read(shown, name, width):
    with shown(name, width) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        seen.page.click(".tensor canvas", position={"x": 40, "y": 20})
        seen.page.wait_for_selector("#why")
        across = seen.page.evaluate("document.documentElement.scrollWidth")
        cut_off = seen.page.evaluate(CUT_OFF)
        levels = seen.page.evaluate(HEADINGS)
        contrasts = {}
        for scheme in SCHEMES:
            seen.page.emulate_media(color_scheme=scheme)
            contrasts[scheme] = seen.page.evaluate(CONTRASTS)
        nameless = seen.page.evaluate(
            "[...document.querySelectorAll('canvas, input, select, button')].filter(one => "
            "!one.ariaLabel && !one.textContent.trim() && !one.labels?.length).length")

    assert across <= width
    assert cut_off == []
    assert [pair for pairs in contrasts.values() for pair in pairs if pair[0] < CONTRAST] == []
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert nameless == 0


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small_and_a_step_is_instant(shown, file_of, name):
    with shown(name) as seen:
        # CPU time, as other tests may run beside this one.
        session = seen.page.context.new_cdp_session(seen.page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _task_s(session)
        seen.page.evaluate(_STEPS, _KEYS)
        step_ms = (_task_s(session) - before) * 1000 / len(_KEYS)

    assert file_of(name).stat().st_size < MAX_PAGE
    assert step_ms < STEP_MS


def _task_s(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


@pytest.mark.parametrize("module", [module.id for module in COURSE.modules])
def test_every_module_can_be_stepped_through(shown, module):
    with shown(module) as seen:
        seen.page.evaluate(_STEPS, ["a", *["ArrowRight"] * 30, "a", "v", *["ArrowLeft"] * 30])
        text = seen.page.inner_text("#app .split > div")

    assert not re.search(r"\bNaN\b|\[object|\bnull\b", text)


# ------------------------------------------------------------------------- what a page shows


def test_a_page_opens_at_its_first_finding(shown):
    with shown("out of bounds") as seen:
        text = here(seen.page)
        beyond = seen.page.inner_text(".beyond")
        legend = seen.page.inner_text(".tensor.used .legend")

    assert "program 9" in text
    assert "y = tl.load(y_ptr + offs)" in text
    assert "Loads 784 elements of y[9216:10000]" in text
    assert "240 elements out of bounds: elements 10,000 to 10,239, where y has 10,000" in text
    assert "past the last element: 240 elements from 10,000 to 10,239" in beyond
    assert legend.split("\n") == ["loaded: 784", "out of bounds: 240"]


def test_without_findings_it_opens_at_the_first_load(shown):
    with shown("sum") as seen:
        assert "x = tl.load(x_ptr + offs, mask=mask)" in here(seen.page)
        assert line_and_program(seen.page)[1] == 0
        assert not seen.page.query_selector(".findings")


def test_padding_is_shown_as_padding(shown):
    with shown("padding") as seen:
        text, variables = here(seen.page), seen.page.inner_text(".variables")
        why = seen.page.inner_text("#why")

    assert why.startswith("result[")
    assert "1 element masked off; without `other` their values are undefined." in text
    assert "1 of 128 are padding, undefined without `other`." in variables
    assert "127 of 128 are True." in variables


def test_lines_have_counts(shown):
    with shown("sum") as seen:
        row = seen.page.inner_text(".lines tr.current")

    assert row.split("\t")[1:3] == ["10×", "↓ 40.0 KB"]


def test_the_line_of_a_finding_is_flagged_once(shown):
    with shown("race") as seen:
        flags = seen.page.evaluate("""[...document.querySelectorAll('.lines tr.flagged *')]
            .filter(one => getComputedStyle(one, '::before').content === '"!"').length""")

    assert flags == 1


def test_pointers_are_shown_as_the_elements_that_they_point_to(shown):
    with shown("swapped strides") as seen:
        text = seen.page.inner_text(".variables")

    assert "b[0:64, 0:64]; 4,096 point outside the tensor." in text


def test_loops_show_the_iteration(shown):
    with shown("product") as seen:
        assert "iteration 1 of 4" in here(seen.page)
        line, _ = line_and_program(seen.page)
        seen.page.fill("#line", str(line))
        seen.page.press("#line", "Enter")
        assert line_and_program(seen.page)[0] == line
        assert "iteration 2 of 4" in here(seen.page)


def test_stores_of_several_programs_to_one_element_are_shown(shown):
    with shown("two programs") as seen:
        seen.page.fill("#line", str(_line_of(seen.page, "tl.store(")))
        seen.page.press("#line", "Enter")
        legend = seen.page.inner_text(".tensor.used .legend")

    assert re.search(r"stored by several programs: \d+", legend)


def test_a_store_after_a_cut_is_not_of_an_untraced_program(shown):
    with shown("cut") as seen:
        why, loop = seen.page.inner_text("#why"), here(seen.page)
        finding = seen.page.inner_text(".findings li")

    assert "Program 0 stored it; its store lies after the part that was traced." in why
    assert re.search(r"iteration 1 of the \d+ traced", loop)
    got, expected = re.search(r"got (\S+), expected (\S+)\.", finding).groups()
    assert finding.count(expected) == 1
    assert f"It is {got} after the call" in why


def test_the_map_of_a_finding_is_set_as_it_is_drawn(shown):
    with shown("scattered") as seen:
        drawn = seen.page.inner_text(".findings pre")

    assert set(drawn) == set("x+.\n")


def test_a_stored_padding_is_not_traced_to_a_loaded_element(shown):
    with shown("padded store") as seen:
        seen.page.fill("#line", str(_line_of(seen.page, "tl.store(")))
        seen.page.press("#line", "Enter")
        canvas = seen.page.locator(".tensor canvas[aria-label^=result]")
        canvas.focus()
        whys = []
        for _ in range(60):
            seen.page.keyboard.press("ArrowDown")
            seen.page.keyboard.press("Enter")
            whys.append(seen.page.inner_text("#why"))

    padding = [why for why in whys if "padding of tile, which is undefined" in why]
    assert padding
    assert not [why for why in padding if "had loaded at this position" in why]
    assert [why for why in whys if "had loaded at this position" in why]


def test_a_finding_about_undefined_values_opens_the_element(shown):
    with shown("padded store") as seen:
        finding = seen.page.inner_text(".findings li")
        why, legend = seen.page.inner_text("#why"), seen.page.inner_text(".tensor.used .legend")

    index = re.search(r"the first is (\[[\d, ]+\])", finding)[1]
    assert f"result{index}" in why
    assert "The stored value is padding of tile, which is undefined" in why
    assert "in a finding: 1" in legend


def test_a_race_opens_the_element_and_what_each_program_loaded(shown):
    with shown("race") as seen:
        why, text = seen.page.inner_text("#why"), here(seen.page)
        finding = seen.page.inner_text(".findings li")

    assert "stored 10 elements of `counts_ptr`" in finding
    assert "5 programs store it." in why
    assert len(re.findall(r"program \d, line \d+ loaded 0", why)) == 5
    assert "Stores 1,024 elements of result[0:10], 10 of them distinct." in text


def test_elements_that_a_load_repeats_are_counted(shown):
    with shown("wrong bound") as seen:
        text = here(seen.page)

    assert "Loads 2,290 elements of a[64:100, 0:50], 1,800 of them distinct." in text


def test_a_helper_shows_its_parameters(shown):
    with shown("helper") as seen:
        seen.page.fill("#line", str(_line_of(seen.page, "pid = tl.program_id(axis=0)")))
        seen.page.press("#line", "Enter")
        text = here(seen.page)
        names = seen.page.eval_on_selector_all(
            ".variable h3 code", "all => all.map(one => one.innerText)")

    assert "in own_sum" in text
    assert {"x_ptr", "n", "BLOCK_SIZE"} <= set(names)


def test_a_statement_over_several_lines_is_one_step(shown):
    with shown("several lines") as seen:
        first = _line_of(seen.page, "tl.store(out_ptr")
        seen.page.keyboard.press("/")
        seen.page.keyboard.type(f"{first + 1}")
        seen.page.keyboard.press("Enter")
        text = here(seen.page)
        rows = seen.page.eval_on_selector_all(
            ".lines tr.current", "rows => rows.map(row => row.innerText.split('\\t').slice(0, 2))")

    assert f"Line {first}, program 0\n" in text
    assert [[one.strip() for one in row] for row in rows] == [
        [str(first), "1×"], [str(first + 1), ""]]


def test_masked_off_elements_are_counted_once(shown):
    with shown("tile") as seen:
        seen.page.keyboard.press("ArrowDown")
        seen.page.keyboard.press("ArrowDown")
        seen.page.keyboard.press("ArrowDown")
        masked = re.search(r"([\d,]+) elements masked off", here(seen.page))[1]
        legend = seen.page.inner_text(".tensor.used .legend").split("\n")

    assert f"masked off: {masked}" in legend


def test_the_cell_of_a_finding_is_never_folded_away(shown):
    with shown("shared stores") as seen:
        seen.page.keyboard.press("v")
        for _ in range(5):
            seen.page.keyboard.press("ArrowDown")
        seen.page.focus(".tensor canvas[aria-label^=result]")
        read = set()
        for _ in range(80):
            seen.page.keyboard.press("ArrowRight")
            read.add(seen.page.text_content("#aloud").split("\n")[0].split(" = ")[0])

    assert {"result[0, 0]", "result[0, 64]"} <= read
    assert "result[0, 32]" not in read


def test_shared_elements_are_counted_for_all_their_programs(shown):
    with shown("shared stores") as seen:
        seen.page.keyboard.press("a")
        text = seen.page.inner_text(".tensor.used")

    assert "At this line 9 programs touch 4,800 elements, 4,800 of them in several" in text
    assert "grey ones to several programs" in text


def test_the_hardware_view_counts_sectors(shown):
    with shown("tile") as seen:
        text = seen.page.inner_text("#hardware")

    assert "8,192 bytes used in 280 sectors of 32 bytes" in text
    assert "768 bytes wasted" in text
    assert "An assumption" in text


def _line_of(page: Page, text: str) -> int:
    rows = page.eval_on_selector_all(".lines tbody tr", "rows => rows.map(r => r.innerText)")
    return next(number for number, row in enumerate(rows, 1)
                if text in row and "×" in row)


# ------------------------------------------------------------------------- keyboard and mouse


def test_arrows_go_to_lines_and_programs(shown):
    with shown("sum") as seen:
        line, program = line_and_program(seen.page)

        seen.page.keyboard.press("ArrowRight")
        assert line_and_program(seen.page) == (line + 1, program)
        seen.page.keyboard.press("ArrowDown")
        assert line_and_program(seen.page) == (line + 1, program + 1)
        assert "y[1024:2048]" in here(seen.page)
        seen.page.keyboard.press("ArrowLeft")
        seen.page.keyboard.press("ArrowUp")
        assert line_and_program(seen.page) == (line, program)
        seen.page.keyboard.press("ArrowUp")
        assert line_and_program(seen.page) == (line, program)


def test_buttons_go_to_lines_and_programs(shown):
    with shown("sum") as seen:
        line, program = line_and_program(seen.page)

        seen.page.click("text=Line ▶")
        seen.page.click("[aria-label='Next program']")
        assert line_and_program(seen.page) == (line + 1, program + 1)
        seen.page.click("text=◀ Line")
        seen.page.click("[aria-label='Previous program']")
        assert line_and_program(seen.page) == (line, program)
        assert seen.page.is_disabled("[aria-label='Previous program']")


def test_sliders_go_to_steps_and_programs(shown):
    with shown("tile") as seen:
        seen.page.fill("#time", "0")
        assert "step 1 of 9" in seen.page.inner_text(".bar")
        seen.page.focus("#time")
        seen.page.keyboard.press("ArrowRight")
        seen.page.keyboard.press("ArrowDown")
        assert "step 2 of 9" in seen.page.inner_text(".bar")
        assert "Program 1, at (1, 0) (12 in all)" in seen.page.inner_text(".bar")

        seen.page.fill("[data-axis='1']", "2")
        assert "Program 9, at (1, 2) (12 in all)" in seen.page.inner_text(".bar")
        seen.page.focus("[data-axis='0']")
        seen.page.keyboard.press("ArrowRight")
        assert "Program 10, at (2, 2) (12 in all)" in seen.page.inner_text(".bar")


@pytest.mark.parametrize("by", ["key", "button", "list"])
def test_the_next_finding_is_reached(shown, by):
    with shown("out of bounds") as seen:
        finding = line_and_program(seen.page)
        for key in ("ArrowUp", "ArrowLeft", "ArrowLeft"):
            seen.page.keyboard.press(key)
        assert line_and_program(seen.page) != finding

        {"key": lambda: seen.page.keyboard.press("f"),
         "button": lambda: seen.page.click("#next"),
         "list": lambda: seen.page.click("[aria-label='Show finding 1']")}[by]()

        assert line_and_program(seen.page) == finding


def test_a_slash_goes_to_a_line(shown):
    with shown("sum") as seen:
        wanted = _line_of(seen.page, "tl.store(")
        seen.page.keyboard.press("/")
        seen.page.keyboard.type(f"{wanted}")
        seen.page.keyboard.press("Enter")
        assert line_and_program(seen.page)[0] == wanted

        seen.page.keyboard.press("/")
        seen.page.keyboard.type("1")
        seen.page.keyboard.press("Enter")
        assert seen.page.inner_text("#notice") == "Line 1 does not run in program 0."
        seen.page.keyboard.press("ArrowLeft")
        assert seen.page.inner_text("#notice") == ""


def test_a_click_on_a_line_goes_there(shown):
    with shown("sum") as seen:
        wanted = _line_of(seen.page, "total = x + y")
        seen.page.click(f"[aria-label='Go to line {wanted}']")

        assert line_and_program(seen.page)[0] == wanted


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_all_programs_are_laid_over_a_tensor(shown, by):
    with shown("tile") as seen:
        before = _picture(seen.page)
        seen.page.keyboard.press("a") if by == "key" else seen.page.check("#all")
        text = seen.page.inner_text(".tensors")

        assert "At this line 12 programs touch 15,000 elements, each in one program" in text
        assert _picture(seen.page) != before
        seen.page.keyboard.press("a")
        assert _picture(seen.page) == before


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_values_are_drawn_in_cells(shown, by):
    with shown("tile") as seen:
        before = _picture(seen.page)
        seen.page.keyboard.press("v") if by == "key" else seen.page.check("#large")

        assert _picture(seen.page) != before


def test_another_launch_can_be_chosen(shown):
    with shown("launches") as seen:
        first = line_and_program(seen.page)
        seen.page.select_option("#launch", "1")
        second = line_and_program(seen.page)
        seen.page.focus("#launch")
        seen.page.keyboard.press("ArrowUp")

        assert line_and_program(seen.page) == first
        assert second != first


def test_an_element_shows_who_stored_it_and_what_was_loaded_for_it(shown):
    with shown("sum") as seen:
        result = seen.page.locator(".tensor canvas").nth(2)
        result.hover(position={"x": 60, "y": 30})
        tip = seen.page.inner_text("#tip")
        result.click(position={"x": 60, "y": 30})
        why = seen.page.inner_text("#why")
        element = re.search(r"result\[(\d+)\]", why)[1]
        seen.page.click("#why .go >> nth=0")

        assert tip.startswith(f"result[{element}]")
        assert "Stored last by program 0, line" in why
        assert f"x[{element}] = " in why
        assert f"y[{element}] = " in why
        assert "tl.store(out_ptr + offs" in here(seen.page)
        seen.page.keyboard.press("Escape")
        assert not seen.page.query_selector("#why")


def test_an_element_of_a_product_came_from_a_row_and_a_column(shown):
    with shown("swapped strides") as seen:
        seen.page.locator(".tensor canvas[aria-label^=result]").click(position={"x": 34, "y": 18})
        why = seen.page.inner_text("#why")

    assert re.search(r"result\[0, [01]\]", why)
    assert "a[0, 0:64]" in why


def test_a_grid_is_read_and_explained_by_keyboard(shown):
    with shown("padding") as seen:
        line = line_and_program(seen.page)
        seen.page.focus(".tensor canvas >> nth=1")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            seen.page.keyboard.press(key)
        aloud = seen.page.inner_text("#aloud")
        seen.page.keyboard.press("Enter")
        why = seen.page.inner_text("#why")

        assert aloud.startswith("result[1, 1]")
        assert "result[1, 1]" in why
        assert "Stored last by program 1" in why
        assert line_and_program(seen.page) == line


def test_all_controls_are_reached_by_tab(shown):
    with shown("tile") as seen:
        seen.page.keyboard.press("f")
        names = set()
        for _ in range(40):
            seen.page.keyboard.press("Tab")
            names.add(seen.page.evaluate(
                "document.activeElement.ariaLabel || document.activeElement.id"
                " || document.activeElement.tagName"))

    assert {"Previous line", "Next line", "Step of this program", "Next program", "all", "large",
            "line", "Program along axis 0", "Program along axis 1", "Source", "SUMMARY",
            "Warp request"} <= names
    assert {name for name in names if name.startswith(("x, 100", "result, 100", "Block "))}


def _picture(page: Page) -> str:
    return page.eval_on_selector(".tensor canvas", "one => one.toDataURL()")
