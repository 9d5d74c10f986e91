"""Predicted times: what must be slower is, bounds have the right name, nothing beats the proof."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import pytest

from grader.engine.compiler.targets import all_targets
from grader.engine.compiler.time_lower_bound import least_seconds
from grader.engine.compiler.timing_model.control_flow import slow_paths
from grader.engine.compiler.timing_model.instruction_costs import PIPES, SUSTAINED_TENSOR
from grader.engine.compiler.timing_model.prediction import GAP, predict, predict_call
from grader.recording.launch_stats import BlockRuns, Interval, Prediction
from tests.support import timed
from tests.support.tiers import by_default
from tests.support.timed import H200, N, add_survey, made, matmul_survey, row, survey

PARTS = {"dram", "l2", "compute", "latency", "launch", "programs", "atomics"}


def add(elements: int = N, block: int = 1024, stride: int = 1, **choice) -> Prediction:
    binary, code = made("add", BLOCK=block, STRIDE=stride, **choice)
    return predict(binary, code, add_survey(elements, block, stride), H200)


def matmul(m: int, columns: int, k: int, n: int = 8192, dtype: str = "float16", **choice
           ) -> Prediction:
    binary, code = made("matmul", M=m, N=columns, K=k, dtype=dtype, n=n, **choice)
    size = 2 if dtype == "float16" else 4
    return predict(binary, code, matmul_survey(n, m, columns, k, size), H200)


def share_of_copy(predicted: Prediction, moved: float) -> float:
    return moved / predicted.seconds / H200.dram


def tflops(predicted: Prediction, n: int = 8192) -> float:
    return 2 * n**3 / predicted.seconds / 1e12


def test_a_streaming_kernel_comes_near_the_speed_of_a_copy():
    predicted = add()

    assert 0.9 < share_of_copy(predicted, 12 * N) <= 1
    assert predicted.bound == "dram"
    assert set(predicted.parts) == PARTS


def test_the_busiest_pipe_names_the_bound_of_a_product():
    predicted = matmul(128, 256, 64, num_stages=3, num_warps=8)

    assert predicted.bound == "compute"
    assert predicted.unit("compute") == "tensor"
    assert predicted.unit("dram") == "dram"
    assert set(predicted.pipes) == set(PIPES)
    assert max(predicted.pipes.values()) <= predicted.parts["compute"] * (1 + 1e-9)
    flops = 2 * 8192**3
    assert predicted.pipes["tensor"] == pytest.approx(
        flops / (SUSTAINED_TENSOR * H200.fp16_tensor), rel=0.05)


def test_pipes_of_a_call_are_those_of_its_launches_together():
    one = add()

    both = predict_call([one, one], H200)

    assert both.pipes == {pipe: 2 * seconds for pipe, seconds in one.pipes.items()}


def test_bank_conflicts_lengthen_the_accesses_of_their_line():
    binary, code = made("matmul", M=64, N=64, K=16, dtype="float32", PRECISION="ieee")
    work = matmul_survey(8192, 64, 64, 16, 4)
    without = dataclasses.replace(binary, shared_accesses=())
    if all(one.bits > 32 for one in binary.shared_accesses):
        pytest.skip("this Triton reads several words at a time, without conflicts")

    priced, free = (predict(one, code, work, H200).pipes for one in (binary, without))

    assert max(one.ways for one in binary.shared_accesses) == 2
    assert 1.2 * free["lsu"] < priced["lsu"] < 2 * free["lsu"]
    assert {**priced, "lsu": 0} == pytest.approx({**free, "lsu": 0})


def test_tiny_programs_are_bound_by_how_fast_programs_start():
    predicted = add(block=32)

    assert predicted.bound == "programs"
    assert share_of_copy(predicted, 12 * N) == pytest.approx(0.15, abs=0.03)


def test_few_elements_are_bound_by_the_launch():
    assert add(4096).bound == "launch"


@pytest.mark.parametrize("stride", [8, 32])
def test_strided_is_slower_than_contiguous(stride):
    assert add(stride=stride).seconds > 2 * add().seconds


def test_sectors_of_their_own_are_bound_by_l2():
    assert add(stride=32).bound == "l2"


def test_two_lines_that_read_the_same_sectors_share_them_in_l1():
    binary, code = made("add")
    x, y, z = add_survey().traffic

    def l2(second: str, unique: int) -> float:
        rows = [x, msgspec.structs.replace(y, tensor=second, unique_sectors=unique), z]
        return predict(binary, code, survey(N // 1024, rows), H200).parts["l2"]

    assert l2(x.tensor, x.unique_sectors) == pytest.approx(l2(y.tensor, x.unique_sectors) * 2 / 3)
    assert l2(x.tensor, x.unique_sectors // 2) > l2(x.tensor, x.unique_sectors)


def test_time_grows_with_bytes():
    seconds = [add(N >> shift).seconds for shift in (6, 4, 2, 0)]

    assert seconds == sorted(seconds)
    assert seconds[-1] > 3 * seconds[-2]


def test_spilling_is_slower():
    both = [row(timed.line(timed.softmax_kernel, text), kind, kind, 4096 * 32768)
            for text, kind in (("x = tl.load", "load"), ("tl.store", "store"))]

    (kept, whole), (spilled, cut) = made("softmax"), made("softmax", num_warps=4)

    assert not kept.spill_bytes
    assert spilled.spill_bytes
    fast = predict(kept, whole, survey(4096, both), H200)
    slow = predict(spilled, cut, survey(4096, both), H200)
    assert slow.parts["l2"] > fast.parts["l2"]
    assert slow.seconds > fast.seconds


def test_few_programs_are_slower_and_bound_by_latency():
    binary, code = made("sum")
    at = timed.line(timed.sum_kernel, "x = tl.load")

    def summed(programs: int) -> Prediction:
        each = N // programs
        return predict(binary, code, survey(programs, [row(at, "load", "x_ptr", N)],
                                            {at: each / 1024}), H200)

    few, many = summed(16), summed(8192)

    assert few.seconds > 4 * many.seconds
    assert few.bound == "latency"
    assert many.bound == "dram"


def test_one_program_too_many_costs_another_wave():
    binary, code = made("matmul", M=128, N=256, num_stages=4)
    assert binary.occupancy.programs == 1
    full = matmul_survey(8192, 128, 256, 64)

    def of(programs: int) -> float:
        scaled = dataclasses.replace(
            full, programs=programs, flops=2 * 128 * 256 * 8192 * programs,
            traffic=tuple(msgspec.structs.replace(
                one, lanes=one.lanes * programs // full.programs,
                sectors=one.sectors * programs // full.programs) for one in full.traffic))
        return predict(binary, code, scaled, H200).seconds

    assert of(133) > 1.5 * of(132)
    assert of(132) < 1.1 * of(100)


def test_tensor_cores_are_faster_than_fma():
    tensor = matmul(64, 64, 32, num_warps=4)
    fma = matmul(64, 64, 32, dtype="float32", PRECISION="ieee", num_warps=4)

    assert fma.bound == "compute"
    assert fma.seconds > 4 * tensor.seconds


def test_products_come_near_what_was_measured():
    assert tflops(matmul(128, 256, 64, num_stages=3)) == pytest.approx(663, rel=0.1)
    assert tflops(matmul(64, 64, 16, dtype="float32", PRECISION="ieee", num_warps=4)
                  ) == pytest.approx(48, rel=0.25)
    assert tflops(matmul(16, 16, 16, num_warps=4)) < 60


def test_products_without_a_pipeline_are_slower():
    assert (matmul(128, 128, 64, num_stages=1).seconds
            > 1.1 * matmul(128, 128, 64, num_stages=3).seconds)


def test_arithmetic_without_accesses_is_bound_by_compute():
    binary, code = made("chain")
    at = [timed.line(timed.chain_kernel, text) for text in ("x = tl.load", "tl.store")]
    moved = [row(at[0], "load", "x_ptr", N), row(at[1], "store", "y_ptr", N)]

    predicted = predict(binary, code, survey(N // 1024, moved), H200)

    assert predicted.bound == "compute"
    assert 2 * 256 * N / predicted.seconds / 1e12 == pytest.approx(56, rel=0.15)


def test_atomics_on_one_address_come_one_by_one():
    binary, code = made("count")
    at = timed.line(timed.count_kernel, "atomic_add")
    rows = [row(at, "atomic", "y_ptr", 1 << 20, sectors=1 << 20, unique=1)]

    alone = predict(binary, code, survey(1 << 20, rows, atomics=1 << 20, hottest=1 << 20), H200)
    apart = predict(binary, code, survey(1 << 20, rows, atomics=1 << 20, hottest=1), H200)

    assert alone.bound == "atomics"
    assert alone.seconds == pytest.approx(1.844e-3, rel=0.1)
    assert apart.seconds < alone.seconds / 2


def test_atomics_on_one_line_wait_for_each_other_sector_by_sector():
    binary, code = made("count")
    at, adds = timed.line(timed.count_kernel, "atomic_add"), 1 << 24

    def of(sectors: int, bins: int) -> float:
        rows = [msgspec.structs.replace(
            row(at, "atomic", "y_ptr", adds, sectors=adds // 32, unique=bins // 8),
            requests=adds // 32, request_sectors=adds // 32 * sectors)]
        return predict(binary, code, survey(1 << 14, rows, atomics=adds, hottest=adds // bins),
                       H200).parts["atomics"]

    # random bins: a warp's 32 lanes fall into so many sectors; measured on an H200
    assert of(20, 256) == pytest.approx(4.05e-3, rel=0.25)
    assert of(28, 1024) == pytest.approx(2.93e-3 * adds / 34603008, rel=0.25)
    # eight adjacent lanes are one atomic of a sector
    assert of(4, 1024) == pytest.approx(0.327e-3 * adds / 34603008, rel=0.25)
    assert of(4, 1 << 20) == pytest.approx(0.045e-3 * adds / 34603008, rel=0.25)


def test_lone_stores_take_longer_in_l2_than_lone_loads():
    binary, code = made("add")

    def l2(kind: str) -> float:
        rows = [row(timed.line(timed.add_kernel, "tl.store"), kind, "z_ptr", N, sectors=N)]
        return predict(binary, code, survey(N // 1024, rows), H200).parts["l2"]

    assert l2("store") == 2 * l2("load")
    assert l2("store") == pytest.approx(1.0e-3, rel=0.1)  # a transpose that writes columns


def test_stores_of_different_requests_meet_in_l2_one_by_one():
    binary, code = made("add")
    whole = row(timed.line(timed.add_kernel, "tl.store"), "store", "z_ptr", N)
    parts = msgspec.structs.replace(whole, requests=N // 32, request_sectors=4 * whole.sectors,
                                    request_bytes=4 * N)

    once, four = (predict(binary, code, survey(N // 1024, [one]), H200).parts["l2"]
                  for one in (whole, parts))

    assert four == 4 * once


def test_a_launch_lasts_as_long_as_its_longest_program():
    binary, code = made("sum")
    at = timed.line(timed.sum_kernel, "x = tl.load")
    rows = [row(at, "load", "x_ptr", 1 << 20)]
    header = timed.line(timed.sum_kernel, "for start")

    def of(most: float) -> float:
        work = survey(128, rows, {at: 8.0})
        loop = BlockRuns((), header, header + 3, header, 8.0, most)
        return predict(binary, code, dataclasses.replace(work, blocks=(loop,)), H200).seconds

    assert of(160.0) > 5 * of(8.0)


def test_elements_of_one_sector_come_from_l1_after_the_first():
    binary, code = made("sum")
    at = timed.line(timed.sum_kernel, "x = tl.load")

    def of(unique: int) -> float:
        rows = [row(at, "load", "x_ptr", 1 << 20, sectors=1 << 20, unique=unique)]
        return predict(binary, code, survey(128, rows, {at: 8192.0}), H200).parts["latency"]

    assert of(1 << 17) < of(1 << 20) / 3


def test_a_walk_of_a_lane_along_its_own_row_loads_each_sector_once_from_l2():
    binary, code = made("sum")
    at = timed.line(timed.sum_kernel, "x = tl.load")

    def l2(unique: int) -> float:
        rows = [row(at, "load", "x_ptr", 1 << 24, sectors=1 << 24, unique=unique)]
        return predict(binary, code, survey(4096, rows, {at: 32.0}), H200).parts["l2"]

    assert l2(1 << 21) < l2(1 << 24) / 8  # eight elements a sector, and as many random ones
    assert l2(1 << 15) > l2(1 << 24) / 3  # random elements of a small table


@pytest.mark.parametrize(("bar", "longer"), [("BAR.SYNC", True), ("NOP", False)])
def test_warps_that_meet_at_barriers_wait_for_latencies_together(bar, longer):
    binary, code = made("chain")
    steps = list(code.instructions)
    steps.insert(1, dataclasses.replace(steps[0], opcode=bar))
    long = dataclasses.replace(binary, warps=32)
    rows = [row(timed.line(timed.chain_kernel, "x = tl.load"), "load", "x_ptr", 132 * 1024)]

    predicted = predict(long, dataclasses.replace(code, instructions=tuple(steps)),
                        survey(132, rows), H200)

    assert (predicted.parts["latency"] > 0) == longer


@pytest.mark.parametrize(("sectors", "cycles"), [(4, 5), (16, 20)])
def test_copies_in_words_cost_cycles_by_their_sectors(sectors, cycles):
    binary, code = made("sum")
    at = timed.line(timed.sum_kernel, "x = tl.load")
    steps = tuple(dataclasses.replace(step, opcode="LDGSTS.E") if step.name == "LDG" else step
                  for step in code.instructions)
    programs, rounds = 1 << 14, 8
    requests = programs * rounds * 2 * binary.warps  # 1024 elements by 128 threads of 4
    whole = row(at, "load", "x_ptr", 32 * requests)
    copied = msgspec.structs.replace(whole, requests=requests, request_sectors=sectors * requests,
                                     request_lines=requests, request_bytes=whole.bytes)

    predicted = predict(binary, dataclasses.replace(code, instructions=steps),
                        survey(programs, [copied], {at: float(rounds)}), H200)

    busy = requests * cycles / H200.multiprocessors / H200.clock
    assert predicted.pipes["lsu"] == pytest.approx(busy, rel=0.25)


def test_the_slow_path_of_a_sine_is_taken_by_no_warp():
    _, code = made("sine")

    slow = {index for first, last in slow_paths(code) for index in range(first, last + 1)}

    table = {index for index, step in enumerate(code.instructions)
             if step.name == "LDG" and "CONSTANT" in step.opcode}  # of digits of 2 / pi
    assert table and table <= slow
    assert len(code.instructions) / 2 < len(slow) < len(code.instructions)
    assert not any(code.instructions[index].name in ("STG", "EXIT") for index in slow)
    assert slow_paths(made("add")[1]) == []


def test_what_an_earlier_launch_left_in_l2_is_read_faster():
    binary, code = made("add")
    small, large = add_survey(1 << 20), add_survey(N)

    assert (predict(binary, code, small, H200, cold=False).parts["dram"]
            < predict(binary, code, small, H200).parts["dram"])
    assert (predict(binary, code, large, H200, cold=False).parts["dram"]
            == predict(binary, code, large, H200).parts["dram"])


def call_of(launches):
    return timed.predict_launches(launches, H200)


def test_more_launches_are_slower_and_wait_for_python():
    binary, code = made("add")
    one = (binary, code, add_survey(4096))

    single, three = call_of([one]), call_of([one] * 3)

    assert single == predict(*one, H200)
    assert three.seconds == pytest.approx(single.seconds + 2 * GAP, rel=0.05)
    assert three.bound == "launch"


def test_long_launches_hide_what_python_does_between_them():
    binary, code = made("add")
    one = (binary, code, add_survey())

    single, three = call_of([one]), call_of([one] * 3)

    assert three.seconds == pytest.approx(3 * single.seconds, rel=0.05)


def test_a_call_without_launches_is_refused():
    with pytest.raises(ValueError, match="without launches"):
        call_of([])


def test_a_launch_without_programs_takes_as_long_as_a_launch():
    binary, code = made("add")

    predicted = predict(binary, code, survey(0, []), H200)

    assert predicted.seconds == H200.launch_seconds
    assert predicted.bound == "launch"


@pytest.mark.parametrize("gpu", by_default(3, all_targets().values()), ids=all_targets().keys())
def test_nothing_beats_the_proof(gpu):
    cases = [(made("add", gpu.capability), add_survey()),
             (made("add", gpu.capability), add_survey(4096)),
             (made("matmul", gpu.capability, M=64, N=64, K=32), matmul_survey(8192, 64, 64, 32))]

    for (binary, code), counted in cases:
        predicted = predict(binary, code, counted, gpu)

        assert 0 <= least_seconds(counted, gpu, binary) <= predicted.seconds
        assert math.isfinite(predicted.seconds)
        assert predicted.bound in PARTS
        assert predicted.runner_up in PARTS - {predicted.bound}


def test_a_loop_that_nobody_counted_is_not_predicted_to_beat_the_proof():
    binary, code = made("matmul", M=64, N=64, K=16, dtype="float32", PRECISION="ieee", num_warps=4)
    counted = dataclasses.replace(matmul_survey(8192, 64, 64, 16, 4), executions={}, traffic=())

    assert predict(binary, code, counted, H200).seconds > least_seconds(counted, H200, binary) > 0


def test_the_proof_counts_bytes_beyond_l2_and_no_more_than_the_least():
    counted = dataclasses.replace(add_survey(), loaded=Interval(8 * N, 80 * N))

    least = least_seconds(counted, H200)

    assert least < 12 * N / H200.dram
    assert least > 0.5 * 12 * N / H200.dram
    assert least_seconds(counted, H200, cold=False) < least
    assert least_seconds(add_survey(1 << 20), H200, cold=False) == 0


def test_the_proof_knows_that_fma_pipes_are_slower():
    counted = matmul_survey(8192, 64, 64, 16, 4)
    tensor, _ = made("matmul")
    fma, _ = made("matmul", M=64, N=64, K=16, dtype="float32", PRECISION="ieee", num_warps=4)

    assert least_seconds(counted, H200, fma) > 5 * least_seconds(counted, H200, tensor)
    assert least_seconds(counted, H200, tensor) >= least_seconds(counted, H200)


def test_a_program_that_holds_nothing_resident_is_still_predicted():
    binary, code = made("add")
    none = dataclasses.replace(binary, occupancy=msgspec.structs.replace(
        binary.occupancy, programs=0, warps=0))

    assert math.isfinite(predict(none, code, add_survey(), H200).seconds)
