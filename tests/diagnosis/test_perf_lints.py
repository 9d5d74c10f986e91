"""Which counts of a launch are a performance defect, and which are none."""

from __future__ import annotations

import dataclasses

import pytest

from grader.diagnosis.perf_lints import SPILLED, Defect, Observed, of_call
from grader.engine.compiler.targets import Target, find
from grader.recording.compiled_kernel import Access, Binary, Occupancy
from grader.recording.launch_stats import BlockRuns, Interval, Survey, Traffic
from grader.submission.dataflow import indirect_lines

H200 = find("h200")


def binary(**facts) -> Binary:
    known = {"kernel": "kernel", "target": "h200", "capability": 90, "registers": 32,
             "spill_bytes": 0, "shared": 0, "warps": 4,
             "occupancy": Occupancy(16, 64, 64, "registers")}
    return Binary(**{**known, **facts})


def traffic(nbytes: int, **facts) -> Traffic:
    known = {"line": 3, "kind": "load", "tensor": "x_ptr", "lanes": nbytes // 4, "bytes": nbytes,
             "sectors": nbytes // 32, "ideal_sectors": nbytes // 32, "unique_sectors": nbytes // 32}
    return Traffic(**{**known, **facts})


def survey(*rows: Traffic, **facts) -> Survey:
    loaded = sum(t.unique_sectors for t in rows if t.kind == "load") * 32
    stored = sum(t.unique_sectors for t in rows if t.kind == "store") * 32
    known = {"kernel": "kernel", "grid": (65536, 1, 1), "programs": 65536, "sampled": 8,
             "traffic": rows, "executions": {t.line: 1.0 for t in rows},
             "loaded": Interval(loaded, loaded), "stored": Interval(stored, stored), "atomics": 0,
             "hottest": 0, "flops": 0}
    return Survey(**{**known, **facts})


def defects(binary: Binary, survey: Survey | None, target: Target, **facts) -> tuple[Defect, ...]:
    return of_call([Observed(binary, survey, **facts)], target)


def named(found: tuple[Defect, ...]) -> set[str]:
    return {defect.name for defect in found}


GIB = 1 << 30


@pytest.mark.parametrize(("nbytes", "names"),
                         [(0, set()), (SPILLED - 1, {"few spills"}),
                          (SPILLED, {"register spills"})])
def test_spills_are_a_hint_up_to_a_number_of_bytes(nbytes: int, names: set[str]):
    assert named(defects(binary(spill_bytes=nbytes), survey(traffic(GIB)), H200)) == names
    assert named(defects(binary(spill_bytes=nbytes), None, H200)) == names


def test_products_beside_tensor_cores_are_named_without_a_survey():
    assert named(defects(binary(dot=True), None, H200)) == {"no tensor cores"}
    assert defects(binary(dot=True, tensor_cores="wgmma"), None, H200) == ()


def test_small_products_are_let_be_where_memory_is_the_bound():
    small = binary(dot=True, tensor_cores="mma", stages=3)
    row = traffic(GIB)

    assert named(defects(small, survey(row, flops=10**10), H200)) == set()
    assert named(defects(small, survey(row, flops=10**12), H200)) == {"small tiles"}


def test_tiles_that_starve_the_tensor_cores_are_named_on_older_gpus_too():
    a100, mma = find("a100"), binary(capability=80, dot=True, tensor_cores="mma", stages=3)
    small, large = (survey(traffic(8 << 30, sectors=(8 << 30) // 32, lanes=4 << 30,
                                   unique_sectors=GIB // 32), flops=2 * reuse * (4 << 30),
                           loaded=Interval(GIB // 8, GIB // 8)) for reuse in (16, 64))

    assert named(defects(mma, small, a100)) == {"small tiles"}
    assert named(defects(mma, large, a100)) == set()


def test_programs_are_not_tiny_where_the_cache_takes_longer_than_starting_them():
    spread = traffic(GIB // 8, sectors=GIB // 32, unique_sectors=GIB // 32 // 8)
    programs = {"programs": 100_000, "executions": {3: 1.0}}

    assert "tiny programs" not in named(defects(binary(), survey(spread, **programs), H200))
    assert "tiny programs" in named(defects(binary(), survey(traffic(GIB // 8), **programs), H200))


def test_weights_that_every_program_reads_are_no_data_read_again():
    weights = traffic(4 * GIB, tensor="w_ptr", line=4, unique_sectors=512)
    moved = survey(traffic(GIB), weights, loaded=Interval(2 * GIB, 3 * GIB))

    assert named(defects(binary(), moved, H200, sizes={"x_ptr": GIB, "w_ptr": 16384})) == set()


def test_what_may_or_may_not_stay_in_l2_is_no_data_read_again():
    again = traffic(3 * GIB, unique_sectors=GIB // 32)
    sizes = {"x_ptr": GIB}

    surely = survey(again, loaded=Interval(2 * GIB, 3 * GIB))
    perhaps = survey(again, loaded=Interval(GIB, 3 * GIB))

    assert named(defects(binary(), surely, H200, sizes=sizes)) == {"data read again"}
    assert named(defects(binary(), perhaps, H200, sizes=sizes)) == set()
    assert named(defects(binary(), surely, H200)) == set()  # nothing is known of its size


def test_an_access_that_starts_between_two_sectors_is_not_strided():
    short = traffic(65536 * 32, sectors=2 * 65536, unique_sectors=65536)

    assert named(defects(binary(warps=1), survey(short), H200)) <= {"small size"}


@pytest.mark.parametrize(("share", "names"), [(0.5, {"strided access"}), (0.05, set())],
                         ids=["half of the bytes", "a twentieth"])
def test_a_strided_access_counts_by_its_share_of_all_sectors(share: float, names: set[str]):
    half = int(share * GIB) // 32 * 32
    strided = traffic(half, sectors=half // 8, unique_sectors=half // 8)
    dense = traffic(GIB - half, line=4, kind="store", tensor="y_ptr")

    assert named(defects(binary(), survey(strided, dense), H200)) == names


def test_width_that_costs_nothing_is_a_hint():
    narrow = binary(accesses=(Access(3, "load", 32, 8),))

    (defect,) = defects(narrow, survey(traffic(GIB, lanes=GIB // 4)), H200)

    assert (defect.name, defect.weight) == ("scalar access", "hint")


def test_a_short_launch_after_a_long_one_is_not_looked_at():
    long = Observed(binary(), survey(traffic(GIB)))
    last = Observed(binary(spill_bytes=4096), survey(traffic(1 << 16), programs=1))

    assert of_call([long, last], H200) == ()
    assert named(of_call([last], H200)) >= {"register spills"}


def test_many_small_launches_are_named_once():
    one = Observed(binary(), survey(traffic(1 << 20)))

    (defect,) = of_call([one] * 8, H200)

    assert (defect.name, defect.weight) == ("launch-bound", "defect")
    assert "8 launches" in defect.seen


def test_a_single_launch_at_a_small_size_is_not_blamed_on_the_kernel():
    (hint,) = of_call([Observed(binary(), survey(traffic(1 << 20)))], H200)

    assert (hint.name, hint.code, hint.weight) == ("small size", "", "hint")
    assert hint.advice.startswith("Look at a size that is at least 137 times as large.")


def test_a_small_size_with_a_long_loop_is_not_called_small():
    small = survey(traffic(1 << 20))
    looped = survey(traffic(1 << 20), blocks=(BlockRuns((), 4, 9, 4, 4096.0, 4096.0),))

    assert [hint.name for hint in of_call([Observed(binary(), small)], H200)] == ["small size"]
    assert of_call([Observed(binary(), looped)], H200) == ()


def test_launches_are_unfused_only_where_one_hands_its_result_to_the_next():
    first = survey(traffic(GIB), traffic(GIB, kind="store", tensor="y_ptr"))
    chain = [Observed(binary(), first, storages={"x_ptr": n, "y_ptr": n + 1}) for n in range(3)]
    apart = [Observed(binary(), first, storages={"x_ptr": 2 * n, "y_ptr": 2 * n + 1})
             for n in range(3)]
    shrinking = [dataclasses.replace(one, survey=dataclasses.replace(first, programs=programs))
                 for one, programs in zip(chain, (65536, 4096, 256), strict=True)]

    assert named(of_call(chain, H200)) == {"unfused launches"}
    assert named(of_call(apart, H200)) == set()
    assert named(of_call(shrinking, H200)) == set()


def test_steps_in_blocks_of_different_sizes_are_unfused_and_a_step_of_neighbours_is_not():
    first = survey(traffic(GIB), traffic(GIB, kind="store", tensor="y_ptr"))
    runs = (("load", "x_ptr"), ("store", "y_ptr"))

    def calls(*programs: int, given: Survey = first, apart=runs) -> list[Observed]:
        return [Observed(binary(), dataclasses.replace(given, programs=count, apart=apart),
                         sizes={"x_ptr": GIB, "y_ptr": GIB},
                         storages={"x_ptr": n, "y_ptr": n + 1})
                for n, count in enumerate(programs)]

    assert named(of_call(calls(65536, 32768), H200)) == {"unfused launches"}
    assert named(of_call(calls(65536, 32768, apart=()), H200)) == set()
    assert named(of_call(calls(65536, 1), H200)) <= {"too few programs"}

    rows = [traffic(GIB, line=line) for line in (3, 4, 5)]
    stencil = dataclasses.replace(survey(*rows, traffic(GIB, kind="store", tensor="y_ptr")),
                                  loaded=first.loaded)  # of three loads, one comes from memory
    assert named(of_call(calls(65536, 65536, given=stencil, apart=runs[1:]), H200)) <= {
        "data read again"}
    own = named(of_call(calls(65536, 65536, given=stencil), H200))
    assert "unfused launches" in own


# ---------------------------------------------------------------------------------------------
# Whose addresses come from loads


def test_addresses_that_come_from_loads_are_known_by_their_lines():
    source = """\
def kernel(x_ptr, at_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + offs)
    place = at * 4
    x = tl.load(
        x_ptr + place,
        mask=offs < n)
    tl.store(out_ptr + offs, x)
    tl.store(out_ptr + place, x)
    tl.atomic_add(out_ptr + tl.load(at_ptr), 1)
"""

    assert indirect_lines(source, "kernel") == {5, 6, 7, 9, 10}
    assert indirect_lines(10 * "\n" + source, "kernel") == {15, 16, 17, 19, 20}
    assert indirect_lines(source, "other") == frozenset()


def test_a_loop_that_begins_at_a_loaded_number_reaches_indexed_places():
    source = """\
def kernel(x_ptr, starts_ptr, out_ptr):
    total = 0.0
    for j in range(tl.load(starts_ptr), 10):
        total += tl.load(x_ptr + j)
    tl.store(out_ptr, total)
"""

    assert indirect_lines(source, "kernel") == {4}
