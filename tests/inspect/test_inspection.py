"""`tritonlab inspect`: what is shown of compiled kernels, on terminals and as a page."""

from __future__ import annotations

import contextlib
import html.parser
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader.diagnosis.perf_lints import Defect, spills
from grader.engine.compiler.targets import find
from grader.inspect import inspection as the_inspection
from grader.inspect.inspection import InspectedCase, Inspection, cases_of
from grader.judge.launch_report import Examined
from grader.recording.compiled_kernel import SharedAccess
from grader.report import Finding, Kind
from grader.sandbox import SandboxBroken
from grader.suite import Cost, performance
from tests.support import inspecting
from tritonlab.course import course
from tritonlab.render import quantities as q

SUITE = Path(grader.__file__).parent / "suites" / "missing-elements" / "03-softmax" / "suite.py"
JOURNAL = Path("tritonlab-workspace/.tritonlab/journal.jsonl")
REFUSED = Finding("L05", "Triton does not compile `f` for NVIDIA H100 SXM: at 3:6:\n    x = y\n"
                         "        ^\ny is not defined", line=7)
FAILS = InspectedCase("64 x 1 024 floats", Kind.PERFORMANCE, findings=(REFUSED,))
made: dict[str, Inspection] = {}


@pytest.fixture
def softmax() -> Inspection:
    return _once("softmax", inspecting.softmax)


@pytest.fixture
def column_major() -> Inspection:
    return _once("column_major", inspecting.column_major)


@pytest.fixture
def matmul() -> Inspection:
    return _once("matmul", inspecting.matmul)


def _once(name: str, make: Callable[[], Inspection]) -> Inspection:
    return made.setdefault(name, None) or made.update({name: make()}) or made[name]


@pytest.fixture
def inspect(run, monkeypatch: pytest.MonkeyPatch):
    """Type `tritonlab inspect`; the grader answers with a given inspection, or raises."""

    def typed(answer: Inspection | BaseException, *words: str):
        asked = []

        def inspected(kernel, suite, target, **more):
            asked.append((kernel, target, more))
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(the_inspection, "inspect", inspected)
        monkeypatch.setitem(vars(grader), "Sandbox", contextlib.nullcontext)
        run("start", "softmax")
        shown = run("inspect", *words)
        typed.asked = asked
        return shown

    return typed


def last_line(text: str) -> str:
    return text.rstrip("\n").splitlines()[-1]


def with_shared_accesses(inspection: Inspection, *accesses: SharedAccess) -> Inspection:
    case = inspection.cases[0]
    launch = case.launches[0]
    binary = replace(launch.binary, shared_accesses=accesses)
    return replace(inspection, cases=(
        replace(case, launches=(replace(launch, binary=binary),)),))


# ------------------------------------------------------------ on a terminal


def test_the_table_says_what_the_compiler_made_of_each_launch(inspect, softmax):
    shown = inspect(softmax)

    assert (shown.code, shown.err) == (0, "")
    assert re.search(r"grid +64 programs +16,384 programs\n", shown.out)
    assert re.search(r"waves +0\.03 of 2,112 programs +15\.5 of 1,056 programs\n", shown.out)
    assert re.search(r"loads +128 bits +128 bits\n", shown.out)
    assert re.search(r"tensor cores +no tl\.dot", shown.out)
    assert last_line(shown.out) == "Next: tritonlab grade"


def test_a_time_is_never_shown_without_saying_that_it_is_predicted(inspect, softmax):
    for words in ((), ("--plain",)):
        said = " ".join(inspect(softmax, *words).out.split())

        assert "Times are predicted for an NVIDIA H100 SXM from compiled code, not measured" in said


def test_bank_conflicts_are_shown_with_their_line(inspect, softmax):
    line = next(iter(softmax.cases[0].lines))
    accesses = (SharedAccess(line, "load", 32, 2.0, 96), SharedAccess(line, "load", 128, 1.0, 8))

    shown = inspect(with_shared_accesses(softmax, *accesses), "--plain").out

    assert f"bank conflicts: 2-way, line {line}\n" in shown
    assert re.search(rf"line {line}: .*96 x LDS\.32, 2-way conflicts", shown)
    assert "LDS.128" not in shown


@pytest.mark.parametrize(("ways", "shown"), [((1.0,), "none"), ((1.0, 0.0), "unknown")])
def test_unknown_addresses_are_not_free_of_conflicts(inspect, softmax, ways, shown):
    accesses = [SharedAccess(None, "store", 32, one, 4) for one in ways]

    assert f"bank conflicts: {shown}\n" in inspect(
        with_shared_accesses(softmax, *accesses), "--plain").out


def test_products_show_tensor_cores_stages_and_copies(inspect, matmul):
    shown = inspect(matmul, "--plain")

    assert "tensor cores: wgmma, which multiply fp16" in shown.out
    assert "copies ahead: cp.async, 128 bits" in shown.out
    assert "stages: 3" in shown.out
    assert "occupancy: 8 of 64 warps, by shared memory" in shown.out
    assert "DRAM, read: 16.8 MB to 25.2 MB" in shown.out
    assert "b_ptr: 134 MB loaded, sectors 100 % used, moved 16.0 times" in shown.out


@pytest.mark.parametrize("width", ["40", "60", "100", "200"])
@pytest.mark.parametrize("which", ["softmax", "column_major", "matmul"])
def test_every_line_fits_the_terminal(inspect, monkeypatch, request, which, width):
    monkeypatch.setenv("COLUMNS", width)

    shown = inspect(request.getfixturevalue(which), "--ptx", "--sass")

    *lines, _ = shown.out.splitlines()
    assert max(map(len, lines)) <= int(width)


def test_notes_stand_beside_the_source_where_there_is_room(inspect, monkeypatch, column_major):
    monkeypatch.setenv("COLUMNS", "200")

    wide = inspect(column_major).out

    load = next(line for line in wide.splitlines() if "tl.load(" in line)
    assert re.search(r"134 MB +12\.5 % +8\.00 x +\d+ x LDG\.32$", load)


def test_notes_stand_below_the_source_where_there_is_not(inspect, monkeypatch, column_major):
    monkeypatch.setenv("COLUMNS", "100")

    lines = inspect(column_major).out.splitlines()

    load = next(n for n, line in enumerate(lines) if "tl.load(" in line)
    assert "x_ptr: 134 MB loaded, sectors 12.5 % used, moved 8.00 times" in lines[load + 1]
    assert "x LDG.32" in lines[load + 2]
    assert "defect: uncoalesced load" in lines[load + 3]


def test_two_launches_stand_side_by_side_or_one_below_the_other(inspect, monkeypatch, softmax):
    monkeypatch.setenv("COLUMNS", "100")
    beside = inspect(softmax).out
    monkeypatch.setenv("COLUMNS", "50")
    below = inspect(softmax).out

    assert beside.count("  registers ") == 1
    assert below.count("  registers ") == 2


def test_advice_names_each_defect_with_its_line_and_the_next_command_edits(inspect, column_major):
    shown = inspect(column_major, "--target", "h200")

    line = inspecting.line_of(inspecting.COLUMN_MAJOR, "tl.store(")
    assert f"uncoalesced store, line {line}" in shown.out
    assert "Make the access coalesced" in shown.out
    assert shown.code == 0
    assert last_line(shown.out).endswith("tritonlab inspect track1/softmax --target h200")


def test_a_hint_is_told_from_a_defect_and_comes_last(inspect, column_major):
    case = column_major.cases[0]
    hint = Defect("scalar access", "T06", None, "tl.dot is slow", "Align it.", "hint")
    found = replace(column_major, cases=(replace(case, defects=(hint, *case.defects)),))

    shown = inspect(found, "--plain")

    assert "\nhint: scalar access\nSeen: tl.dot is slow." in shown.out
    assert "A hint names a possible improvement; it may not cost time as things are." in shown.out
    assert shown.out.index("uncoalesced store") < shown.out.index("scalar access")


def test_a_hint_for_another_case_names_it_and_leaves_the_kernel_clean(inspect, softmax):
    small, large = softmax.cases
    hint = Defect("small size", "", None, "A launch costs more.", "Look at more.", "hint")
    found = replace(softmax, cases=(replace(small, defects=(hint,)), large))

    shown, written = inspect(found, "--plain"), inspect(found, "--html", "page.html")

    assert "No known defect was found, only what the hints below name." in shown.out
    assert "hint: small size, in the case 64 x 1,024 floats" in shown.out
    assert "Why" not in shown.out
    assert last_line(shown.out) == "Next: tritonlab grade"
    assert "Found: hint: small size, in the case 64 x 1,024 floats" in written.out
    assert "1 hint found:" in Page(Path("page.html").read_text()).words


def test_launches_that_are_alike_share_a_column_and_too_many_are_counted(inspect, softmax):
    case = softmax.cases[0]
    alike = (case.launches[0],) * 3
    others = tuple(replace(case.launches[0], line=line) for line in range(1, 12))
    found = replace(softmax, cases=(replace(case, launches=(*alike, *others)),))

    shown = inspect(found, "--plain")

    assert "launch 1, softmax_kernel, 3 times: registers" in shown.out
    assert "launch 8, " in shown.out
    assert "launch 9, " not in shown.out
    assert "4 more launches are in `--json`." in shown.out


def test_that_no_defect_was_found_is_no_promise(inspect, softmax):
    said = " ".join(inspect(softmax).out.split())

    assert "No known defect was found. Compiled code" in said


def test_the_roofline_says_on_which_side_of_the_ridge_a_launch_is(inspect, softmax, matmul):
    assert "below the ridge point of 22.3 (datasheet peak of FP32 over DRAM rate). Predicted to " \
        "reach 95.4 %" in inspect(softmax, "--plain").out
    assert "above the ridge point of 330 (datasheet peak of FP16 tensor cores over DRAM rate)" \
        in inspect(matmul, "--plain").out


def test_without_operations_only_the_rate_of_memory_is_told(inspect, softmax):
    case = replace(softmax.cases[1], least=Cost(1))

    shown = inspect(replace(softmax, cases=(case,)), "--plain")

    assert "No operations are counted, so memory alone decides. Predicted to reach 95.4 % of the " \
        "DRAM rate: 2.86 TB/s." in shown.out


def test_a_launch_that_was_not_surveyed_has_its_code_and_no_place(inspect, softmax):
    case = softmax.cases[0]
    bare = replace(case.launches[0], survey=None, prediction=None)
    found = replace(softmax, cases=(replace(
        case, launches=(bare,), unknown=("Its addresses depend on values.",)),))

    shown = inspect(found, "--plain")

    assert "DRAM, read: unknown" in shown.out
    assert "predicted time: none" in shown.out
    assert "Its addresses depend on values. So it has no place on the roofline." in shown.out
    assert "x STG.128" in shown.out


def test_listings_stand_under_the_lines_that_they_come_from(inspect, softmax):
    plain, shown = inspect(softmax, "--ptx", "--plain"), inspect(softmax, "--ptx")

    line = inspecting.line_of(softmax.text, "tl.program_id(")
    assert re.search(rf"^PTX of softmax_kernel {line}: mov.*%ctaid", plain.out, re.M)
    assert "SASS" not in plain.out
    assert f"    {line}  row = tl.program_id(" in shown.out


def test_plain_is_one_fact_a_line_without_decoration(inspect, column_major):
    shown = inspect(column_major, "--plain")

    assert "launch 1, column_major_softmax_kernel: registers: 32 a thread" in shown.out
    assert all(line == line.strip() and line for line in shown.out.splitlines())


def test_colour_is_left_out_where_it_is_not_wanted(inspect, monkeypatch, column_major):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert "\x1b[3" not in inspect(column_major).out


# ------------------------------------------------------------ what can go wrong


def test_an_unknown_target_names_those_that_there_are(run, monkeypatch):
    run("start", "softmax")

    shown = run("inspect", "--target", "h1000")

    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("No target is called 'h1000'. There are h100, ")
    assert shown.err.endswith("Name one of these with --target.\n")


def test_a_target_is_found_whatever_its_capitals(inspect, softmax):
    inspect(softmax, "--target", "H200", "--case", "wide")

    (_, target, more), = inspect.asked
    assert (target.name, more["case"]) == ("h200", "wide")


def test_an_unknown_case_names_the_nearest(inspect):
    shown = inspect(grader.UnknownCase("wider", ["64 x 1 024 floats"]), "--case", "wider")

    assert shown.code == 2
    assert "No case of track1/softmax is called 'wider'. The nearest: \"64 x 1 024" in shown.err


def test_a_kernel_that_does_not_compile_is_shown_with_the_compilers_words(inspect, softmax):
    found = replace(softmax, cases=(FAILS,))

    shown, data = inspect(found), json.loads(inspect(found, "--json").out)

    assert shown.code == 1
    assert "Nothing to inspect: 64 x 1 024 floats  (compile-error)" in shown.out
    lines = shown.out.splitlines()
    quoted = next(n for n, line in enumerate(lines) if "x = y" in line)
    assert lines[quoted].index("y") == lines[quoted + 1].index("^")
    assert last_line(shown.out).endswith("then type: tritonlab inspect track1/softmax")
    assert (data["exit_code"], data["cases"][0]["findings"][0]["line"]) == (1, 7)


def test_a_grader_that_breaks_is_not_the_kernels_fault(inspect):
    lost = inspect(SandboxBroken("the zygote is gone"))
    wrong = inspect(ValueError("a mistake of ours"))

    assert (lost.code, wrong.code) == (3, 3)
    assert "Run `tritonlab doctor` to find the cause." in lost.err
    assert "tritonlab itself failed (ValueError); your work is untouched." in wrong.err


def test_nothing_is_recorded(inspect, softmax):
    inspect(softmax)

    events = [json.loads(line)["event"] for line in JOURNAL.read_text().splitlines()]
    assert set(events) == {"started"}


# ------------------------------------------------------------ as data


def test_the_json_holds_facts_and_says_that_times_are_not_measured(inspect, column_major):
    data = json.loads(inspect(column_major, "--json").out)

    launch, = data["cases"][0]["launches"]
    line = str(inspecting.line_of(inspecting.COLUMN_MAJOR, "tl.load("))
    assert (data["schema"], data["module"], data["exit_code"]) == (1, "track1/softmax", 0)
    assert launch["prediction"]["measured"] is False
    assert launch["binary"]["occupancy"]["share"] == 1.0
    assert launch["binary"]["layouts"][0]["lanes"] == [4, 8, 16, 32, 64]
    assert launch["survey"]["loaded"]["low"] == 4 * 16_384 * 2_048
    assert launch["survey"]["blocks"][0]["runs"] == 1.0
    assert data["cases"][0]["lines"][line]["moved"][0]["efficiency"] == 1 / 8
    assert data["cases"][0]["roofline"][0]["bound_by_memory"] is True
    assert "ptx" not in launch
    assert data["next"].endswith("tritonlab inspect track1/softmax")


def test_the_json_holds_listings_that_are_asked_for(inspect, softmax):
    data = json.loads(inspect(softmax, "--json", "--sass").out)

    launch = data["cases"][0]["launches"][0]
    assert launch["sass"][0][1].startswith("/*0000*/")
    assert "ptx" not in launch


# ------------------------------------------------------------ as a page


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text between them."""

    VOID = frozenset(("meta", "line", "circle", "br", "wbr"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def page(inspect):
    def written(answer: Inspection) -> Page:
        shown = inspect(answer, "--html", "page.html")
        assert "The page is page.html" in shown.out
        return Page(Path("page.html").read_text(encoding="utf-8"))

    return written


def test_the_page_needs_nothing_from_elsewhere(page, softmax):
    text = page(softmax)

    assert not [tag for tag, _ in text.elements if tag in ("script", "link", "img", "iframe")]
    assert not [attributes for _, attributes in text.elements
                if {"src", "onload", "onclick"} & attributes.keys()]
    assert not re.search(r"url\((?!#)|@import|https?:", Path("page.html").read_text())


def test_what_a_kernel_says_stays_text(page, column_major):
    seen = "<b>lanes</b> & `<b>sectors</b>`"
    case = column_major.cases[0]
    named = replace(case, name="</summary><img src=x>", defects=(
        Defect("odd <u>", "T01", None, seen, "Do it."),))

    text = page(replace(column_major, cases=(named,)))

    assert "<script>alert(1)" in text.words
    assert "<b>lanes</b> & <b>sectors</b>." in text.words
    assert "</summary><img src=x>" in text.words
    assert "odd <u>" in text.words
    assert not [tag for tag, _ in text.elements if tag in ("script", "img", "u")]
    assert len([tag for tag, _ in text.elements if tag == "b"]) == 2  # of the two meters


def test_the_page_says_what_the_terminal_says(page, column_major):
    words = " ".join(page(column_major).words.split())

    assert "uncoalesced load, line 19" in words
    assert "134 MB" in words
    assert "12.5 %" in words
    assert "predicted for an NVIDIA H100 SXM from compiled code, not measured" in words
    assert "Make the access coalesced" in words
    assert "ld.global" in words


@pytest.mark.parametrize("which", ["softmax", "column_major", "matmul"])
def test_every_point_is_drawn_and_named_in_both_drawings(page, request, which):
    found = request.getfixturevalue(which)
    points = [point for case in found.cases for point in case.points(found.target)]

    page(found)

    drawings = re.findall("<svg.*?</svg>", Path("page.html").read_text(), re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        for number, point in enumerate(points, 1):
            assert f">{number}</text>" in drawing
            assert f">{point.label}" in drawing


def test_a_point_at_the_ceiling_lies_on_the_roof_and_a_slow_one_below(softmax):
    from tritonlab.render import charts

    target = softmax.target
    slow, = softmax.cases[0].points(target)
    ideal = replace(slow, seconds=slow.bytes / target.dram)

    [axes] = charts.inspection_figure([("case", slow), ("case", ideal)], target).axes

    heights = [line.get_ydata() for line in axes.lines if line.get_linestyle() == "--"]
    (below, roof), (on, the_same) = heights
    assert below < roof
    assert on == pytest.approx(the_same) == pytest.approx(roof)


def test_a_page_that_cannot_be_written_names_the_place(inspect, softmax):
    shown = inspect(softmax, "--html", "missing/page.html")

    assert shown.code == 2
    assert shown.err.startswith("The page cannot be written to missing/page.html: there is no")


def test_a_page_never_takes_the_place_of_something_else(inspect, softmax):
    Path("kernel.py").write_text("my work")

    shown = inspect(softmax, "--html", "kernel.py")

    assert (shown.code, shown.out, Path("kernel.py").read_text()) == (2, "", "my work")
    assert "is not a page, so it is left alone" in shown.err


def test_a_page_of_a_kernel_that_does_not_compile_says_so(page, softmax):
    words = page(replace(softmax, cases=(FAILS,))).words

    assert "Nothing could be inspected" in words
    assert "y is not defined" in words


# ------------------------------------------------------------ how an inspection comes about


def test_performance_cases_are_looked_at_unless_another_is_named():
    suite = grader.load_suite(SUITE)

    usual, named = cases_of(suite), cases_of(suite, "32 x 128 in float16")

    assert {case.kind for case in usual} == {Kind.PERFORMANCE}
    assert [case.name for case in named] == ["32 x 128 in float16"]
    assert cases_of(replace(suite, cases=suite.cases[:3]))[0].name == "32 x 128 floats"


def test_of_every_module_cases_with_launches_are_inspected_unless_one_is_named():
    for module in course.load(course.shipped_roots()).modules:
        cases = cases_of(grader.load_suite(module.suite))

        assert cases, module.id
        assert not [case.name for case in cases if case.reading or case.call or case.raises]


@pytest.mark.parametrize(("spilled", "limit", "defects"), [
    (64, 0, 1), (64, 64, 0), (64, None, 0), (0, 0, 0), (200, 0, 1)])
def test_a_spill_beyond_the_limit_of_a_case_is_a_defect_as_for_a_grade(
        softmax, spilled, limit, defects):
    launch = softmax.cases[0].launches[0]
    launch = replace(launch, binary=replace(launch.binary, spill_bytes=spilled))
    case = performance("64 x 1 024", spills=limit)

    found = the_inspection._with_spills(case, Examined(launches=(launch,)))

    assert [(one.name, one.code, one.weight) for one in found] == [
        ("register spills", "T04", "defect")] * defects


def test_a_spill_above_the_limit_takes_the_place_of_the_hint_of_a_small_one(softmax):
    launch = softmax.cases[0].launches[0]
    launch = replace(launch, binary=replace(launch.binary, spill_bytes=8))
    (hint,) = spills(launch.binary)

    strict, lenient = (
        the_inspection._with_spills(performance("64 x 1 024", spills=limit), Examined(
            launches=(launch,), defects=(hint,))) for limit in (0, 8))

    assert [(one.name, one.weight) for one in strict] == [("register spills", "defect")]
    assert lenient == (hint,)


def test_a_small_spill_is_a_hint_beside_the_words_that_no_defect_was_found(inspect, softmax):
    small, large = softmax.cases
    launch = large.launches[0]
    launch = replace(launch, binary=replace(launch.binary, spill_bytes=8))
    found = replace(softmax, cases=(small, replace(
        large, launches=(launch,), defects=tuple(spills(launch.binary)))))

    shown = inspect(found, "--plain")

    assert "spills: 8 bytes a thread" in shown.out
    assert "No known defect was found, only what the hints below name." in shown.out
    assert "\nhint: few spills\nSeen: `softmax_kernel` spills 8 bytes per thread" in shown.out


def test_a_case_that_asks_for_an_exception_cannot_be_inspected():
    suite = grader.load_suite(SUITE)
    refusing = next(case.name for case in suite.cases if case.raises)

    with pytest.raises(grader.UnknownCase):
        cases_of(suite, refusing)


def test_the_reference_is_recorded_and_compiled(sandbox):
    found = the_inspection.inspect(
        inspecting.SOFTMAX, grader.load_suite(SUITE), find(), case="64 x 1 024 floats",
        sandbox=sandbox)

    case, = found.cases
    launch, = case.launches
    assert (launch.kernel, launch.grid, found.exit_code) == ("softmax_kernel", (64, 1, 1), 0)
    assert launch.line == inspecting.line_of(found.text, "softmax_kernel[")
    assert case.least.bytes == 2 * 4 * 64 * 1024
    assert case.inputs == ("x: float32, 64 x 1,024, strides 1,024, 1, without values",)


def test_what_does_not_compile_is_a_finding_with_its_line(sandbox, tmp_path):
    broken = tmp_path / "kernel.py"
    broken.write_text(inspecting.SOFTMAX.read_text().replace(
        "block_size = triton.next_power_of_2(n_cols)", "block_size = n_cols"))

    found = the_inspection.inspect(
        broken, grader.load_suite(SUITE), find(), case="5 x 1 000 floats", sandbox=sandbox)

    finding, = found.findings
    assert (finding.code, found.exit_code) == ("L05", 1)
    assert finding.line == inspecting.line_of(found.text, "tl.arange(")
    assert finding.means.startswith("The number of elements of a block must be a power of two")


def test_a_file_with_blanks_is_not_run(sandbox, tmp_path):
    start = tmp_path / "kernel.py"
    start.write_text((inspecting.ROOT / "tracks" / "missing-elements" / "03-softmax"
                      / "kernel.py").read_text())

    found = the_inspection.inspect(start, grader.load_suite(SUITE), find(), sandbox=sandbox)

    assert [finding.code for finding in found.findings] == ["P01"]


def test_what_the_function_raises_is_a_finding(sandbox, tmp_path):
    raising = tmp_path / "kernel.py"
    raising.write_text(inspecting.SOFTMAX.read_text().replace(
        "    check_argument(x)\n", "    raise ValueError('no')\n", 1))

    found = the_inspection.inspect(raising, grader.load_suite(SUITE), find(),
                                   case="64 x 1 024 floats", sandbox=sandbox)

    assert [finding.code for finding in found.findings] == ["R01"]


def test_the_reference_has_no_defect_and_nearly_the_rate_of_memory(sandbox):
    found = the_inspection.inspect(inspecting.SOFTMAX, grader.load_suite(SUITE), find(),
                                   sandbox=sandbox, listings=True)

    large = found.largest
    launch, = large.launches
    load = inspecting.line_of(found.text, "tl.load(")
    point, = large.points(found.target)
    assert [defect for defect in found.defects if defect.weight == "defect"] == []
    assert (launch.survey.loaded.low, launch.programs) == (4 * 16_384 * 4_096, 16_384)
    assert large.lines[load].instructions == ("8 x LDG.128",)  # 32 numbers for each of 128 threads
    assert {line for line, text in launch.sass if "LDG.E" in text} == {load}
    assert {line for line, text in launch.ptx if "ld.global" in text} == {load}
    assert 0.5 < point.share(found.target) <= 1.1


@pytest.mark.course
def test_all_performance_cases_of_a_module_with_two_functions_are_inspected(
        sandbox, inspect, page):
    module = course.load(course.shipped_roots()).find("track2/shared-memory")

    found = the_inspection.inspect(module.solution, grader.load_suite(module.suite), find(),
                                   sandbox=sandbox)

    assert {launch.kernel for case in found.cases for launch in case.launches} == {
        "gram_kernel", "column_stats_kernel"}
    assert "column_stats: 4096 x 65536 floats" in inspect(found).out
    assert page(found).words


def test_a_lesson_and_the_tool_mean_the_same_a100():
    lesson = (inspecting.ROOT / "tracks/debugging/03-performance-profiling/README.md").read_text()

    title = find("a100").title
    assert title.endswith("80 GB")
    assert "A100 80 GB it is 312 / 2.039 = 153 FLOP/B" in lesson
    assert "1.555" not in lesson  # TB/s of the A100 with 40 GB


def test_a_column_major_kernel_is_found_out_line_by_line(sandbox, tmp_path, page):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(inspecting.COLUMN_MAJOR)

    found = the_inspection.inspect(kernel, grader.load_suite(SUITE), find(), sandbox=sandbox)

    load, store = (inspecting.line_of(found.text, f"tl.{call}(") for call in ("load", "store"))
    assert {defect.line for defect in found.defects} >= {load, store}
    assert found.largest.lines[load].moved[0].coalescing == pytest.approx(1 / 8)
    assert f"strided access, line {store}" in page(found).words


# ------------------------------------------------------------ numbers


@pytest.mark.parametrize(("number", "said"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.00 KB"), (33_554_432, "33.6 MB"), (4.3e9, "4.30 GB"),
    (999_999, "1.00 MB")])
def test_bytes_have_three_digits_and_a_unit(number, said):
    assert q.bytes_(number) == said


@pytest.mark.parametrize(("number", "said"), [
    (1.0, "100 %"), (0.9999, "99.9 %"), (0.125, "12.5 %"), (0.0, "0 %"), (1e-6, "0.1 %")])
def test_a_share_is_not_rounded_to_all_or_nothing(number, said):
    assert q.share(number) == said


@pytest.mark.parametrize(("number", "said"), [
    (1.5, "1.50 s"), (2.23e-5, "22.3 µs"), (4e-9, "4 ns"), (3.1e-3, "3.10 ms")])
def test_seconds_have_three_digits_and_a_unit(number, said):
    assert q.seconds(number) == said
