"""Cases that are judged by what they cost: grids with axes of their own, and calls of planners."""

from __future__ import annotations

import pytest

from grader.judge.perf_limits import axes, described, operations, scratch
from grader.recording.launch_stats import LaunchFacts
from grader.recording.model import Alloc, Argument, Launch, Recording, View
from grader.report import Kind
from grader.suite.cases import Limits, call, reads


def launched(*grids: tuple[int, int, int]) -> Recording:
    return Recording((), tuple(Launch("kernel", grid, {}, line=7) for grid in grids), ())


def test_an_axis_is_limited_only_where_a_case_says_so():
    assert axes(Limits(), launched((64, 1, 1))) == ({}, [])


@pytest.mark.parametrize("grid", [(13, 2, 2), (2, 3, 13), (13, 3, 1), (13, 1, 1)],
                         ids=["tiles", "batch last", "strips or flat tiles", "whole matrices"])
def test_a_grid_whose_axes_count_one_dimension_each_passes(grid: tuple[int, int, int]):
    told, findings = axes(Limits(axis=13), launched(grid))

    assert (told, findings) == ({"programs along an axis": "13, limit 13"}, [])


@pytest.mark.parametrize(("grid", "axis"), [((52, 1, 1), 0), ((2, 26, 1), 1)],
                         ids=["one line", "batch and rows in one"])
def test_the_launch_whose_axis_counts_several_dimensions_is_named(grid, axis):
    told, [finding] = axes(Limits(axis=13), launched((13, 2, 2), grid))

    assert told == {"programs along an axis": f"{max(grid)}, limit 13"}
    assert (finding.code, finding.line) == ("T03", 7)
    assert f"is {grid}: axis {axis} has {max(grid)} programs" in finding.seen


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("kind", ["descriptor", "int"])
def test_who_makes_descriptors_is_asked_only_where_a_case_says_so(asked: bool, kind: str):
    launch = Launch("kernel", (1, 1, 1), {"x_desc": Argument(kind, 3)}, line=7)
    recording = Recording((), (launch,), ())
    right = asked == (kind == "descriptor")

    told, findings = described(Limits(described=asked), recording)

    assert described(Limits(), recording) == ({}, [])
    assert told["descriptors from the host"][0] == ("1" if kind == "descriptor" else "0")
    assert [(one.code, one.line) for one in findings] == ([] if right else [("T06", 7)])


@pytest.mark.parametrize(("limit", "codes"), [(None, []), (2.0, []), (1.9, ["T01"])])
def test_operations_are_limited_only_where_a_case_says_so(limit: float | None, codes: list[str]):
    launch = LaunchFacts("kernel", 4, 0, 64, 64, 32, 150, 2, 2)

    told, findings = operations(Limits(flops=limit), 150, [launch, launch])

    assert bool(told) == (limit is not None)
    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(("limit", "codes"), [(None, []), (96, []), (95, ["T01"])])
def test_memory_beside_the_results_is_limited_only_where_a_case_says_so(
        limit: int | None, codes: list[str]):
    result = View(3, "float32", (256,), (1,), 0)
    allocated = (Alloc(1, 64), Alloc(2, 32), Alloc(3, 1024))

    told, findings = scratch(Limits(scratch=limit), Recording((), allocated, (result,)))

    assert bool(told) == (limit is not None)
    assert [finding.code for finding in findings] == codes
    assert all("64" in finding.seen for finding in findings)  # the largest


@pytest.mark.parametrize(("code", "kind"), [("Q01", Kind.CALL), ("T02", Kind.PERFORMANCE)])
def test_a_call_that_is_judged_by_its_cost_is_a_performance_case(code: str, kind: Kind):
    case = call("a plan", "plan", check=lambda answer: None, code=code)

    assert case.kind is kind
    assert case.call is not None


@pytest.mark.parametrize(("code", "kind"), [("Q01", Kind.CALL), ("T06", Kind.PERFORMANCE)])
def test_a_text_that_is_read_for_how_the_work_is_done_is_a_performance_case(code: str, kind: Kind):
    assert reads("a text", "kernel", check=lambda texts: None, code=code).kind is kind
