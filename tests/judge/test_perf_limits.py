"""Cases that are judged by what they cost: grids with axes of their own, and calls of planners."""

from __future__ import annotations

from pathlib import Path

import pytest

import grader
from grader.judge.perf_limits import check, count
from grader.recording.launch_stats import LaunchFacts
from grader.recording.model import Alloc, Argument, Launch, Recording, View
from grader.report import Kind
from grader.suite import Cost, Limits, load
from grader.suite.cases import call, reads

SUITES = Path(grader.__file__).parent / "suites"


def asked_by(suite: str, name: str) -> Limits:
    """What functions of a shipped suite ask of the case with this name."""
    [limits] = [case.limits for case in load(SUITES / suite / "suite.py").all_cases
                if case.name == name]
    return Limits(check=limits.check, check_code=limits.check_code)


AXES = asked_by("optimization/01-tiling", "13 matrices of 96 x 96 floats, counted")
DESCRIPTORS = {where: asked_by(
    "optimization/07-tensor-descriptors",
    f"matmul_desc: 256 x 256 times 256 x 256, made {where}, for an H100")
    for where in ("on the host", "in the kernel")}
SCRATCH = asked_by("mastery/03-attention-kernels", "1 x 2 x 256 x 64 in float16, counted")


def launched(*grids: tuple[int, int, int]) -> Recording:
    return Recording((), tuple(Launch("kernel", grid, {}, line=7) for grid in grids), ())


@pytest.mark.parametrize("grid", [(13, 2, 2), (2, 3, 13), (13, 3, 1), (13, 1, 1)],
                         ids=["tiles", "batch last", "strips or flat tiles", "whole matrices"])
def test_a_grid_whose_axes_count_one_dimension_each_passes(grid: tuple[int, int, int]):
    told, findings = check(AXES, Cost(0), [], launched(grid), 1)

    assert (told, findings) == ({"programs along an axis": "13, limit 13"}, [])


@pytest.mark.parametrize(("grid", "axis"), [((52, 1, 1), 0), ((2, 26, 1), 1)],
                         ids=["one line", "batch and rows in one"])
def test_the_launch_whose_axis_counts_several_dimensions_is_named(grid, axis):
    told, [finding] = check(AXES, Cost(0), [], launched((13, 2, 2), grid), 1)

    assert told == {"programs along an axis": f"{max(grid)}, limit 13"}
    assert (finding.code, finding.line) == ("T03", 7)
    assert f"is {grid}: axis {axis} has {max(grid)} programs" in finding.seen


@pytest.mark.parametrize("where", DESCRIPTORS)
@pytest.mark.parametrize("kind", ["descriptor", "int"])
def test_descriptors_are_made_where_the_case_asks_for_them(where: str, kind: str):
    launch = Launch("kernel", (1, 1, 1), {"x_desc": Argument(kind, 3)}, line=7)
    recording = Recording((), (launch,), ())
    right = (where == "on the host") == (kind == "descriptor")

    told, findings = check(DESCRIPTORS[where], Cost(0), [], recording, 1)

    assert told["descriptors from the host"][0] == ("1" if kind == "descriptor" else "0")
    assert [(one.code, one.line) for one in findings] == ([] if right else [("T06", 7)])


@pytest.mark.parametrize(("limit", "codes"), [(None, []), (2.0, []), (1.9, ["T01"])])
def test_operations_are_limited_only_where_a_case_says_so(limit: float | None, codes: list[str]):
    launch = LaunchFacts("kernel", 4, 0, 64, 64, 32, 150, 2, 2)

    told, findings = count(Limits(flops=limit), Cost(0, 150), [launch, launch], 1)

    assert bool(told) == (limit is not None)
    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(("n_bytes", "codes"), [(65_536, []), (65_537, ["T01"])])
def test_memory_beside_the_results_is_limited(n_bytes: int, codes: list[str]):
    result = View(3, "float32", (256,), (1,), 0)
    allocated = (Alloc(1, n_bytes - 32), Alloc(2, 32), Alloc(3, 1024))

    told, findings = check(SCRATCH, Cost(0), [], Recording((), allocated, (result,)), 1)

    assert told == {"scratch memory": f"{n_bytes:,} bytes, limit 65,536"}
    assert [finding.code for finding in findings] == codes
    assert all(f"largest tensor has {n_bytes - 32:,}" in finding.seen for finding in findings)


def test_a_case_without_checks_of_its_suite_gives_no_fact():
    assert check(Limits(), Cost(0), [], launched((64, 1, 1)), 1) == ({}, [])


@pytest.mark.parametrize(("code", "kind"), [("Q01", Kind.CALL), ("T02", Kind.PERFORMANCE)])
def test_a_call_that_is_judged_by_its_cost_is_a_performance_case(code: str, kind: Kind):
    case = call("a plan", "plan", check=lambda answer: None, code=code)

    assert case.kind is kind
    assert case.call is not None


@pytest.mark.parametrize(("code", "kind"), [("Q01", Kind.CALL), ("T06", Kind.PERFORMANCE)])
def test_a_text_that_is_read_for_how_the_work_is_done_is_a_performance_case(code: str, kind: Kind):
    assert reads("a text", "kernel", check=lambda texts: None, code=code).kind is kind
