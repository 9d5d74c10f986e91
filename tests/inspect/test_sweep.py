"""`tritonlab inspect --set`: other values of launch parameters, a version or a table of several."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest

import grader
from grader.engine.compiler.targets import find
from grader.inspect import inspection as the_inspection
from grader.inspect import sweep as the_sweep
from grader.inspect.sweep import Sweep, SweepRow, SweptCase, sweep
from grader.report import Finding
from grader.submission.launch_parameters import UnknownParameter
from tests.support import inspecting
from tritonlab.grading.kernels import settings_of

SUITE = inspecting.ROOT / "grader" / "suites" / "missing-elements" / "03-softmax" / "suite.py"
WRONG = Finding("N01", "3 of 128 elements are wrong.")


@pytest.fixture(scope="module")
def swept() -> Sweep:
    launch = inspecting.softmax().cases[1].launches[0]
    other = replace(launch, binary=replace(launch.binary, ptx_sha256="0" * 64, spill_bytes=96))
    rows = (SweepRow({"num_warps": 4}, (launch,), 1.82e-4, "dram", "expected to pass"),
            SweepRow({"num_warps": 8}, (other,), 1.81e-4, "dram", "GPU needed"),
            SweepRow({"num_warps": 16}, (other,), 1.7e-4, "l2", "fails", WRONG, "4 x 127"),
            SweepRow({"num_warps": 3}, finding=Finding("L05", "num_warps must be a power of 2")))
    return Sweep("missing-elements/03-softmax", "0" * 64, find(), ("num_warps",), (
        SweptCase("16 384 x 4 096 floats", rows),
        SweptCase("64 x 1 024 floats", (rows[0], replace(rows[0], values={"num_warps": 8})))), {})


@pytest.fixture
def inspect(run, monkeypatch: pytest.MonkeyPatch, swept):
    """Types `tritonlab inspect`; the grader answers with a given sweep."""
    monkeypatch.setattr(the_sweep, "sweep", lambda *_, **__: swept)
    monkeypatch.setitem(vars(grader), "Sandbox", contextlib.nullcontext)
    run("start", "softmax")
    return lambda *words: run("inspect", *words)


def test_each_combination_has_a_row_with_its_figures_and_a_reason_if_it_is_wrong(inspect, capsys):
    shown = inspect("--set", "num_warps=4,8,16,3", "--plain")

    assert shown.code == 0
    assert ("16 384 x 4 096 floats, num_warps=4: regs 32, spills none, shared 32 B, sectors "
            "unknown, instr 8, time 182 µs, bound DRAM, verdict expected to pass\n") in shown.out
    assert "spills 96 B" in shown.out
    assert "wrong-values in the case 4 x 127: 3 of 128 elements are wrong." in shown.out
    assert "num_warps=3: compile-error: num_warps must be a power of 2\n" in shown.out
    assert "Shortest predicted time: num_warps=4, 182 µs.\n" in shown.out
    assert "64 x 1 024 floats: its launches do not depend on these values." in shown.out


@pytest.mark.parametrize("more", [(), ("--plain",)])
def test_a_fault_that_no_value_changes_is_named_once(inspect, swept, monkeypatch, more):
    right, _, wrong, _ = swept.cases[0].rows
    case = SweptCase("a case", (wrong, replace(right, outlook="fails", finding=WRONG,
                                               wrong="4 x 127", seconds=1e-4)))
    monkeypatch.setattr(the_sweep, "sweep", lambda *_, **__: replace(swept, cases=(case,)))

    shown = " ".join(inspect("--set", "num_warps=4,16", *more).out.split())

    assert case.wrong_anyway
    assert shown.count("wrong-values") == 1
    assert "With all values: wrong-values in the case 4 x 127: 3 of 128 elements" in shown
    assert "Shortest predicted time: num_warps=4, 100 µs." in shown


@pytest.mark.parametrize("width", ["40", "70", "80", "120"])
def test_every_line_of_a_table_fits_the_terminal(inspect, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)

    *lines, _ = inspect("--set", "num_warps=4,8,16,3").out.splitlines()

    assert max(map(len, lines)) <= int(width)


def test_the_json_holds_a_row_for_each_combination(inspect):
    data = json.loads(inspect("--set", "num_warps=4,8,16,3", "--json").out)

    rows = data["cases"][0]["rows"]
    assert data["parameters"] == ["num_warps"]
    assert [row["values"]["num_warps"] for row in rows] == [4, 8, 16, 3]
    assert rows[0]["measured"] is False
    assert (rows[1]["spill_bytes"], rows[3]["registers"]) == (96, None)
    assert (rows[2]["wrong"], rows[2]["finding"]["name"]) == ("4 x 127", "wrong-values")


@pytest.mark.parametrize(("words", "message"), [
    (["num_warps"], "'num_warps' does not set anything. Type `--set NAME=VALUE`"),
    (["num_warps=four"], "'four' is not a value. Give a number"),
    (["num_warps=[4]"], "'[4]' is not a value."),
    (["num_warps=1,2,4,8,16", "num_stages=1,2,3,4,5"], "These are 25 combinations of values; at "
                                                       "most 24 are compared."),
    (["num_warps=4,8", "--html", "page.html"], "A table of several versions has no page"),
])
def test_a_setting_that_cannot_be_read_is_explained(inspect, words, message):
    options = [part for word in words for part in (
        (word,) if word.startswith("--") or word.endswith("html") else ("--set", word))]

    shown = inspect(*options)

    assert (shown.code, shown.out) == (2, "")
    assert message in shown.err


def test_values_are_literals_and_a_name_may_be_set_again():
    assert settings_of(["A=1, 2.5", "B=True", "A=None", "C='ieee'"]) == {
        "A": [1, 2.5, None], "B": [True], "C": ["ieee"]}


def test_values_are_compiled_checked_and_judged_without_touching_the_file(sandbox, tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(inspecting.SOFTMAX.read_text().replace("1.0 / denominator", "SCALE / "
                      "denominator").replace("\n\n\n", "\n\nSCALE = tl.constexpr(1.0)\n\n\n", 1))
    before = kernel.read_bytes()

    found = sweep(kernel, grader.load_suite(SUITE), find(),
                  {"num_warps": [8, 3], "SCALE": [1.0, 2.0]}, sandbox=sandbox,
                  case="16 384 x 4 096 floats")

    (case,) = found.cases
    right, wrong, *broken = case.rows
    assert case.name == "16 384 x 4 096 floats"
    assert (right.finding, right.outlook, right.bound) == (None, "expected to pass", "dram")
    assert right.instructions > 100
    assert right.sectors_per_request == pytest.approx(16)
    assert (wrong.finding.code, wrong.outlook, wrong.wrong) == ("N01", "fails", "32 x 128 floats")
    assert [(row.finding.code, row.launches) for row in broken] == [("R01", ())] * 2
    assert case.best == (right,)
    assert kernel.read_bytes() == before


def test_one_value_is_inspected_line_by_line(sandbox, run, monkeypatch):
    found = the_inspection.inspect(
        inspecting.SOFTMAX, grader.load_suite(SUITE), find(), case="64 x 1 024 floats",
        sandbox=sandbox, values={"num_warps": 16, "BLOCK_SIZE": 256})
    monkeypatch.setattr(the_inspection, "inspect", lambda *_, **__: found)
    monkeypatch.setitem(vars(grader), "Sandbox", contextlib.nullcontext)
    run("start", "softmax")

    shown = run("inspect", "--set", "num_warps=16", "--set", "BLOCK_SIZE=256", "--plain")

    assert found.cases[0].launches[0].binary.warps == 16
    assert found.text == inspecting.SOFTMAX.read_text()
    assert not found.clean
    assert ("With num_warps=16, BLOCK_SIZE=256; your file, which is shown below, is unchanged. "
            "With these values, the case ") in shown.out


def test_an_unknown_parameter_names_the_nearest_and_all(inspect, monkeypatch):
    def unknown(*_, **__):
        raise UnknownParameter("num_warp", ("BLOCK_SIZE", "num_warps", "num_stages"))

    monkeypatch.setattr(the_inspection, "inspect", unknown)

    shown = inspect("--set", "num_warp=4")

    assert shown.code == 2
    assert "has no parameter 'num_warp'. Did you mean num_warps? Set one of BLOCK_SIZE, " \
        "num_warps, num_stages." in shown.err
