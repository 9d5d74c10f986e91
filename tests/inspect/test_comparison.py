"""`tritonlab inspect --against`: two versions side by side."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader.inspect import inspection as the_inspection
from grader.inspect.comparison import Comparison
from grader.inspect.inspection import Inspection
from tests.support import inspecting

KERNEL = Path("tritonlab-workspace/track1/softmax/kernel.py")


@pytest.fixture(scope="module")
def versions() -> tuple[Inspection, Inspection]:
    """The column-major kernel, and the same with a comment above a store of another kind."""
    after = inspecting.column_major()
    case = after.cases[0]
    launch = case.launches[0]
    binary = replace(launch.binary, registers=64, spill_bytes=16, ptx_sha256="0" * 64)
    before = replace(after, text=after.text.replace("y, mask", "y * 1, mask"), cases=(replace(
        case, launches=(replace(launch, binary=binary, grid=(8192, 1, 1)),)),))
    return before, after


@pytest.fixture
def inspect(run, monkeypatch: pytest.MonkeyPatch, versions):
    """Types `tritonlab inspect`; the grader answers with each version, as the file is one."""
    before, after = versions

    def inspected(kernel, *_, **__):
        return before if "before" in Path(kernel).read_text() else after

    monkeypatch.setattr(the_inspection, "inspect", inspected)
    monkeypatch.setitem(vars(grader), "Sandbox", contextlib.nullcontext)
    run("start", "softmax")
    return lambda *words: run("inspect", *words)


def test_figures_and_lines_that_differ_stand_side_by_side(inspect):
    Path("other.py").write_text("# before\n")

    shown = inspect("--against", "other.py", "--plain")

    store = inspecting.line_of(inspecting.COLUMN_MAJOR, "tl.store(")
    assert shown.code == 0
    assert "Your version beside other.py, compiled for an NVIDIA H100 SXM" in shown.out
    assert ": registers a thread: 64, now 32 (x 0.50)\n" in shown.out
    assert ": spills a thread: 16 bytes, now 0 bytes (gone)\n" in shown.out
    assert ": programs: 8,192, now 16,384 (x 2.00)\n" in shown.out
    assert re.search(": shared memory: [0-9]+ bytes, unchanged\n", shown.out)
    assert f"\nline {store}: tl.store(out_ptr + row + cols * n_rows, y, mask=mask)\nbefore: " \
        "out_ptr: 134 MB stored" in shown.out
    assert "tl.load(" not in shown.out


def test_the_whole_call_comes_first_with_its_bounds(inspect):
    Path("other.py").write_text("# before\n")

    plain, shown = (inspect("--against", "other.py", *more) for more in (["--plain"], ["--json"]))

    text = r"predicted time of the call: (.*), bound by DRAM; now \1, bound by DRAM \(same\)\n"
    assert re.search(text, plain.out)
    case = json.loads(shown.out)["cases"][0]
    assert case["seconds"]["before"] == case["seconds"]["after"] > 0


def test_a_launch_that_is_gone_takes_one_line(inspect, monkeypatch, versions):
    before, after = versions
    case = before.cases[0]
    gone = replace(case.launches[0], kernel="square_kernel")
    earlier = replace(before, cases=(replace(case, launches=(*case.launches, gone)),))
    monkeypatch.setattr(the_inspection, "inspect", lambda kernel, *_, **__: (
        earlier if "before" in Path(kernel).read_text() else after))
    Path("other.py").write_text("# before\n")

    shown = inspect("--against", "other.py", "--plain").out

    (line,) = (line for line in shown.splitlines() if "square_kernel" in line)
    assert re.search(r"square_kernel: not launched any more; it took .+s$", line)


def test_the_last_version_is_that_of_the_last_grade_or_inspection(inspect):
    KERNEL.write_text("# before\n")
    inspect()
    KERNEL.write_text("# after\n")

    shown = inspect("--against", "last")
    again = inspect("--against", "last", "--json")

    assert "Your version beside the last one" in shown.out
    assert json.loads(again.out)["cases"][0]["launches"][0]["figures"]["registers"] == {
        "before": 64, "after": 32}


def test_without_another_version_there_is_nothing_to_compare(inspect):
    first = inspect("--against", "last")
    inspect()
    second = inspect("--against", "last")

    for shown in (first, second):
        assert (shown.code, shown.out) == (2, "")
        assert "No other version of track1/softmax is kept. `grade` and `inspect` keep" in shown.err


def test_the_line_with_the_most_live_registers_is_marked(inspect, versions):
    case = versions[1].cases[0]
    line = inspecting.line_of(inspecting.COLUMN_MAJOR, "tl.exp(")
    launch = replace(case.launches[0], live=((line - 1, 20), (line, 27), (line + 3, 26)))

    assert {number: row.live for number, row in replace(case, launches=(launch,)).lines.items()
            if row.live} == {line: 27}


def test_the_same_code_is_said_to_be_the_same(inspect, versions):
    Path("other.py").write_text("# after\n")

    assert "Both versions compile to the same code." in inspect("--against", "other.py").out


@pytest.mark.parametrize("width", ["40", "80", "120"])
def test_every_line_of_a_comparison_fits_the_terminal(inspect, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    Path("other.py").write_text("# before\n")

    *lines, _ = inspect("--against", "other.py").out.splitlines()

    assert max(map(len, lines)) <= max(int(width), 62)


@pytest.mark.parametrize(("words", "message"), [
    (["--against", "nowhere.py"], "There is no file at nowhere.py."),
    (["--against", "last", "--ptx"], "A table of several versions has no page and no listings."),
    (["--against", "last", "--set", "A=1,2"], "--against compares with one version of yours."),
])
def test_what_cannot_be_compared_is_explained(inspect, words, message):
    shown = inspect(*words)

    assert (shown.code, shown.out) == (2, "")
    assert message in shown.err


def test_launches_are_paired_by_name_then_by_place(versions):
    before, after = versions
    launch = after.cases[0].launches[0]
    names = [replace(launch, kernel=name) for name in ("one", "two", "three")]

    def compared(earlier, later):
        cases = [(replace(version.cases[0], launches=tuple(launches)),)
                 for version, launches in ((before, earlier), (after, later))]
        (case,) = Comparison("", replace(before, cases=cases[0]),
                             replace(after, cases=cases[1])).cases
        return [pair.kernel for pair in case.launches]

    assert compared(names, [names[1], names[0]]) == ["two", "one", "three"]
    assert compared(names[:1], names[1:]) == ["one, now two", "three"]
