"""Recordings on a GPU: what is checked, what is timed. A device of ours stands in for the real one.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from msgspec import structs
from triton.runtime.driver import driver

from grader.engine.compiler import stub_driver, targets
from grader.engine.gpu import nvml
from grader.engine.gpu.clock import LEAST_REPEATS, TimingJob, measure, part
from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.engine.gpu.memory import ZONE, GpuMemory, same
from grader.executor import gpu_service as executor
from grader.executor.binding import without_memory
from grader.executor.extract import kernels
from grader.executor.gpu_replay import LaunchRefused, prepare, run_checked, time_call
from grader.gpu import client
from grader.processes import session as session_module
from grader.processes.replies import MemoryFile, Stopped, run_of, timed_of, unusable
from grader.processes.session import Session
from grader.recording import arena
from grader.recording.model import (
    Alloc,
    Argument,
    Descriptor,
    Fill,
    Launch,
    MalformedRecording,
    Move,
    Recording,
    View,
    to_json,
)
from grader.report import Finding
from grader.sandbox import Sandbox
from grader.submission import source
from grader.suite import Function

CPU = torch.device("cpu")
SOURCE = '''
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + scale * tl.load(y_ptr + offs,
             mask=mask), mask=mask)


@triton.jit
def atomic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)
'''
N = 100


@pytest.fixture
def known(tmp_path: Path) -> Any:
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    return kernels.from_file(str(path))


def view(storage: int, n: int = N, dtype: str = "float32", offset: int = 0) -> View:
    return View(storage, dtype, (n,), (1,), offset)


def recorded(*more: Any, scale: float = 1.0, kernel: str = "add_kernel", **options: Any
             ) -> Recording:
    arguments = {
        "x_ptr": Argument("tensor", view(0)), "y_ptr": Argument("tensor", view(1)),
        "out_ptr": Argument("tensor", view(2)), "n": Argument("int", N),
        "scale": Argument("float", scale), "BLOCK": Argument("int", 128),
    }
    launch = Launch(kernel, (1, 1, 1), arguments, options, line=12)
    return Recording((view(0), view(1)), (Alloc(2, 4 * N), *more, launch), (view(2),))


def inputs(seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(N, generator=generator) for _ in range(2)]


def holding(tensors: list[torch.Tensor], poison: int = 0) -> GpuMemory:
    memory = GpuMemory(CPU, poison)
    with arena.pack(tensors) as packed:
        for number, place in enumerate(packed.layout()):
            memory.load(number, packed.fd, place)
    return memory


def adding(kernel: Any, launch: Launch, bound: Any) -> None:
    """Does what the kernel says, as a GPU would."""
    bound["out_ptr"].copy_(bound["x_ptr"] + bound["scale"] * bound["y_ptr"])


# ---------------------------------------------------------------------------------------------
# One run, checked


def test_a_recording_is_replayed_on_memory_of_the_device(known):
    x, y = inputs()
    replay = prepare(recorded(scale=2.5, num_warps=8), holding([x, y]), known, adding)

    findings = run_checked(replay, recorded())

    assert findings == []
    assert torch.equal(replay.results[0], x + 2.5 * y)


def test_launchers_get_kernel_options_and_exact_floats(known):
    seen = {}

    def look(kernel: Any, launch: Launch, bound: Any) -> None:
        seen.update(bound, kernel=kernel.fn.__name__, **launch.options)

    prepare(recorded(scale=0.1, num_warps=8), holding(inputs()), known, look).run()

    assert (seen["kernel"], seen["scale"], seen["num_warps"], seen["BLOCK"]) == (
        "add_kernel", 0.1, 8, 128)
    assert seen["x_ptr"].data_ptr() % 512 == ZONE % 512 == 0 or seen["x_ptr"].device == CPU


@pytest.mark.parametrize("poison", [0, 1])
def test_fresh_memory_and_zones_hold_poison(known, poison):
    memory = holding(inputs(), poison)

    replay = prepare(recorded(), memory, known, lambda *_: None)

    byte = (0xFF, 0xA5)[poison]
    assert set(replay.results[0].view(torch.uint8).tolist()) == {byte}
    assert memory.overruns() == []


@pytest.mark.parametrize("first, count, said", [
    (N, 1, "stored 4 bytes past the end of `out_ptr`, 0 elements away from it"),
    (N + 24, 8, "stored 32 bytes past the end of `out_ptr`, 24 to 31 elements away"),
    (-2, 2, "stored 8 bytes before the start of `out_ptr`, 0 to 1 elements away"),
])
def test_a_store_outside_is_m02_with_tensor_and_distance(known, first, count, said):
    def stray(kernel: Any, launch: Launch, bound: Any) -> None:
        adding(kernel, launch, bound)
        out = bound["out_ptr"]
        out.as_strided((count,), (1,), out.storage_offset() + first).fill_(1.0)

    replay = prepare(recorded(), holding(inputs()), known, stray)

    [finding] = run_checked(replay, recorded())

    assert (finding.code, finding.line) == ("M02", 12)
    assert said in finding.seen


def test_a_changed_input_is_m07(known):
    def swapped(kernel: Any, launch: Launch, bound: Any) -> None:
        bound["y_ptr"].zero_()

    replay = prepare(recorded(), holding(inputs()), known, swapped)

    [finding] = run_checked(replay, recorded())

    assert (finding.code, finding.seen) == (
        "M07", "On the GPU, the call modified input 2.")


def in_place() -> Recording:
    """Of input 1 every other element is changed; the kernel has it as its output."""
    first = recorded()
    launch = first.events[-1]
    half = View(0, "float32", (N // 2,), (2,), 0)
    arguments = {**launch.arguments, "out_ptr": Argument("tensor", half)}
    return Recording(first.inputs, (Launch(launch.kernel, launch.grid, arguments, {}, 12),),
                     (half,), in_place=True)


def doubling(kernel: Any, launch: Launch, bound: Any) -> None:
    bound["out_ptr"].mul_(2.0)


@pytest.mark.parametrize(("launcher", "codes"), [
    (doubling, []),
    (lambda kernel, launch, bound: bound["x_ptr"].mul_(2.0), ["M07"]),
    (lambda kernel, launch, bound: bound["y_ptr"].mul_(2.0), ["M07"]),
], ids=["its elements", "those between too", "another input"])
def test_what_is_changed_in_place_is_changed_alone(known, launcher, codes):
    x, y = inputs()
    replay = prepare(in_place(), holding([x, y]), known, launcher)

    findings = run_checked(replay, in_place())

    assert [finding.code for finding in findings] == codes
    assert codes or torch.equal(replay.results[0], 2 * x[::2])


def test_an_input_of_nan_is_unchanged(known):
    x = torch.full((N,), float("nan"))
    replay = prepare(recorded(), holding([x, x.clone()]), known, adding)

    assert run_checked(replay, recorded()) == []


def test_host_operations_are_done_in_order(known):
    zero, copied = Fill(view(2), 0.0), Move(view(2, 10), view(0, 10))
    x, y = inputs()
    replay = prepare(recorded(zero, copied), holding([x, y]), known, lambda *_: None)

    replay.run()

    assert torch.equal(replay.results[0], torch.cat([x[:10], torch.zeros(N - 10)]))


def test_a_move_within_one_storage_reads_before_it_writes(known):
    x, y = inputs()
    shifted = Move(view(2, N - 1, offset=1), view(2, N - 1))
    recording = Recording((view(0), view(1)), (Alloc(2, 4 * N), Move(view(2), view(0)), shifted),
                          (view(2),))
    replay = prepare(recording, holding([x, y]), known, adding)

    replay.run()

    assert torch.equal(replay.results[0][1:], x[:-1])


def test_host_descriptors_are_made_on_the_device(known):
    described = Descriptor(View(0, "float32", (10, 10), (10, 1), 0), (8, 8), (8, 1), (4, 4))
    recording = recorded()
    launch = recording.events[-1]
    bent = Launch(launch.kernel, launch.grid,
                  {**launch.arguments, "x_ptr": Argument("descriptor", described)})
    seen = []

    prepare(Recording(recording.inputs, (recording.events[0], bent), recording.results),
            holding(inputs()), known, lambda kernel, launch, bound: seen.append(bound)).run()

    made = seen[0]["x_ptr"]
    assert (made.shape, made.strides, made.block_shape, made.padding) == (
        [8, 8], [8, 1], [4, 4], "zero")


@pytest.mark.parametrize("recording, why", [
    (Recording((view(0, 1000),), (), (view(0),)), "beyond storage 0"),
    (Recording((view(0),), (), (view(7),)), "storage 7 does not exist"),
    (Recording((view(0),), (Alloc(0, 8),), (view(0),)), "allocated twice"),
    (Recording((view(0),), (Move(view(0), view(1, 7)),), (view(0),)), "torch refuses"),
])
def test_what_does_not_fit_together_is_malformed(known, recording, why):
    with pytest.raises(MalformedRecording, match=why):
        prepare(recording, holding(inputs()), known, adding).run()


def test_holes_of_a_file_are_zeros_that_nobody_reads():
    sparse = arena.SparseTensor(torch.empty(1 << 22, device="meta"),
                                ((0, torch.ones(4)), ((1 << 22) - 4, torch.ones(4))))

    memory = holding([sparse])  # type: ignore[list-item]

    loaded = memory.tensor(view(0, 1 << 22))
    assert loaded.sum() == 8
    assert loaded[-4:].tolist() == [1.0] * 4


# ---------------------------------------------------------------------------------------------
# Time


class Event:
    """Notes when it was recorded, in the time of the fake device."""

    def __init__(self, device: Fake) -> None:
        self._device = device
        self.at = -1.0

    def record(self) -> None:
        self.at = self._device.now
        self._device.log.append("event")

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Event) -> float:
        assert self._device.log[-1] == "rest", "a clock was read before the device came to rest"
        return other.at - self.at


class Fake:
    """A device on which every launch takes as long as it is told to."""

    def __init__(self, graphs: bool = True, states: tuple[nvml.ClockState, ...] = ()) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.graphs = graphs
        self.states = states or (nvml.ClockState(1980, 3201, 0),)
        self._looks = 0

    def event(self) -> Event:
        return Event(self)

    def synchronize(self) -> None:
        self.log.append("rest")

    def look(self) -> nvml.ClockState:
        self._looks += 1
        return self.states[(self._looks - 1) % len(self.states)]

    def flush(self) -> None:
        self.log.append("flush")
        self.now += 1.0

    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None:
        return work if self.graphs else None


def taking(device: Fake, *ms: float) -> Callable[[], None]:
    times = itertools.cycle(ms)

    def work() -> None:
        device.log.append("work")
        device.now += next(times)
    return work


def test_median_and_percentiles_of_at_least_twenty_repeats():
    device = Fake()

    made = measure([TimingJob(taking(device, 1.0, 2.0, 3.0, 4.0, 5.0))], device)

    assert (made.ms, made.p20_ms, made.p80_ms) == (3.0, 2.0, 5.0)
    assert made.repeats >= LEAST_REPEATS
    assert made.graph
    assert [part(range(1, 101), share) for share in (0.2, 0.5, 0.8)] == [21, 51, 81]


def test_l2_is_flushed_after_outputs_were_spoilt_and_before_each_start():
    device = Fake()

    def before() -> None:
        device.log.append("spoil")

    def after() -> None:
        device.log.append("compare")

    measure([TimingJob(taking(device, 1.0), before, after)], device)

    once = ["spoil", "flush", "event", "work", "event", "compare"]
    repeats = "".join(device.log).split("rest")
    assert {run.replace("".join(once), "") for run in repeats} == {""}


def test_every_repeat_takes_the_next_set_of_inputs():
    device, order = Fake(), []
    jobs = [TimingJob(taking(device, 1.0), before=lambda n=n: order.append(n)) for n in range(3)]

    measure(jobs, device)

    assert len(order) > 100
    assert {(one, other) for one, other in itertools.pairwise(order) if other} == {(0, 1), (1, 2)}
    assert max(map(order.count, range(3))) - min(map(order.count, range(3))) <= 3


def test_without_graphs_the_measurement_says_so():
    device = Fake(graphs=False)

    assert not measure([TimingJob(taking(device, 1.0))], device).graph


def test_small_jobs_are_timed_as_part_of_a_graph_of_many():
    device = Fake()
    work = taking(device, 0.002)

    made = measure([TimingJob(work), TimingJob(work)], device)

    assert made.ms == pytest.approx(0.002)
    assert device.log.count("work") > 5000


def test_a_wide_spread_is_measured_again():
    device = Fake()
    noisy = [1.0, 2.0, 3.0] * 34 + [1.0, 1.0]

    job = TimingJob(taking(device, *noisy[:3], *([1.0, 2.0] * 50), *([1.0] * 10_000)))
    made = measure([job], device)

    assert made.spread == 0


def test_clocks_are_the_lowest_and_reasons_all_that_were_seen():
    device = Fake(states=(nvml.ClockState(1980, 3201, 0x4), nvml.ClockState(1500, 3201, 0x20)))

    made = measure([TimingJob(taking(device, 1.0))], device)

    assert made.clocks_mhz[1] == 3201
    assert "power cap" in made.throttled or "thermal" in made.throttled
    assert nvml.words(0x4 | 0x20 | 0x1) == "power cap, thermal"


def test_without_its_library_nothing_is_said_of_clocks():
    assert nvml.Monitor("GPU-of-nobody").look() == nvml.ClockState()


def timed(known: Any, launcher: Any, *recordings: Recording, device: Fake | None = None,
          sets: int = 2) -> Any:
    device = device or Fake()

    def launching(kernel: Any, launch: Launch, bound: Any) -> None:
        device.now += 0.001 * bound["BLOCK"]
        launcher(kernel, launch, bound)

    return time_call(recordings or (recorded(),), [holding(inputs(seed)) for seed in range(sets)],
                     known, launching, device, l2_bytes=0)


def test_results_are_those_of_timed_runs_for_each_set(known):
    timing = timed(known, adding)

    assert timing.findings == []
    for seed, [result] in enumerate(timing.results):
        assert torch.equal(result, sum(inputs(seed)))
    assert timing.best.ms == pytest.approx(0.128)
    assert timing.untimed == []


def test_what_works_in_place_gets_its_input_anew_for_each_repeat(known):
    """Also where a call is so short that others are timed many at a time."""
    device, launches = Fake(), []

    def short(kernel: Any, launch: Launch, bound: Any) -> None:
        device.now += 0.001
        launches.append(launch)
        doubling(kernel, launch, bound)

    timing = time_call([in_place()] * 2, [holding(inputs(seed)) for seed in range(2)], known,
                       short, device, l2_bytes=12 * 8 * N)

    assert timing.findings == []
    assert timing.untimed == []
    for seed, [result] in enumerate(timing.results):
        assert torch.equal(result, 2 * inputs(seed)[0][::2])
    assert len(launches) < 2_000


def test_what_a_repeat_does_not_write_is_poison(known):
    """A result of an earlier run is no result of this one."""
    plain, runs = {"add_kernel": known["add_kernel"]}, []

    def once(kernel: Any, launch: Launch, bound: Any) -> None:
        runs.append(launch)
        if len(runs) <= 2:  # the checked runs of both sets
            adding(kernel, launch, bound)

    timing = timed(plain, once)

    assert [finding.code for finding in timing.findings] == ["M09"]
    assert all(bool(result.isnan().all()) for [result] in timing.results[:1])


def test_atomics_may_differ_and_the_judge_gets_both(known):
    runs = []

    def drifting(kernel: Any, launch: Launch, bound: Any) -> None:
        runs.append(launch)
        adding(kernel, launch, bound)
        bound["out_ptr"][0] += len(runs) * 1e-6

    both = timed(known, drifting)
    plain = {name: kernel for name, kernel in known.items() if name == "add_kernel"}

    alone = timed(plain, drifting)

    assert both.findings == []
    assert len(both.untimed) == len(both.results) == 2
    assert [finding.code for finding in alone.findings] == ["M09"]


def test_a_store_outside_in_a_timed_run_is_found(known):
    runs = []

    def later(kernel: Any, launch: Launch, bound: Any) -> None:
        adding(kernel, launch, bound)
        runs.append(launch)
        if len(runs) > 10:
            out = bound["out_ptr"]
            out.as_strided((1,), (1,), out.storage_offset() + N).fill_(1.0)

    assert {finding.code for finding in timed(known, later).findings} == {"M02"}


def test_of_several_configurations_the_fastest_counts(known):
    first = recorded()
    launch = first.events[-1]

    def with_block(block: int) -> Recording:
        bent = Launch(launch.kernel, launch.grid,
                      {**launch.arguments, "BLOCK": Argument("int", block)})
        return Recording(first.inputs, (first.events[0], bent), first.results)

    def small_enough(kernel: Any, launch: Launch, bound: Any) -> None:
        if bound["BLOCK"] == 64:
            raise LaunchRefused(Finding("T05", "It does not fit."))
        adding(kernel, launch, bound)

    timing = timed(known, small_enough, with_block(512), with_block(64), with_block(256))

    assert timing.findings == []
    assert [one.config for one in timing.configurations] == [
        "configuration 1 of 3", "configuration 3 of 3"]
    assert timing.best.config == "configuration 3 of 3"
    assert timing.best.ms == pytest.approx(0.256)


def test_what_does_not_compile_is_told(known):
    def refuse(*_: Any) -> None:
        raise LaunchRefused(Finding("L05", "No."))

    assert [f.seen for f in timed(known, refuse).findings] == ["No."]
    assert [f.seen for f in timed(known, refuse, recorded(), recorded()).findings] == ["No."]


def test_what_is_compiled_ahead_has_a_launcher_for_each_signature(known, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    launchers: list[str] = []
    [adds] = recorded().launches
    aligned, halves = (structs.replace(adds, arguments=adds.arguments | more) for more in (
        {"n": Argument("int", 16)}, {"x_ptr": Argument("tensor", view(0, dtype="float16"))}))

    with stub_driver.pretending(targets.find("h100")):
        monkeypatch.setattr(
            driver.active, "launcher_cls",
            lambda source, metadata: launchers.append(source.signature["x_ptr"]), raising=False)
        executor.compile_ahead(known, [adds, aligned, halves,
                                       structs.replace(adds, kernel="no_kernel")])

    assert sorted(launchers) == ["*fp16", "*fp32"]


# ---------------------------------------------------------------------------------------------
# The protocol


def test_a_run_answers_as_the_executor_does(known):
    file = MemoryFile("results")
    x, y = inputs()

    reply = executor.run(recorded(), holding([x, y]), file.fd, known, adding)

    run = run_of(json.loads(json.dumps(reply)), file)
    assert torch.equal(run.results[0], x + y)
    assert run.findings == ()


def test_windows_of_results_are_read_alone(known):
    file = MemoryFile("results")
    x, y = inputs()

    reply = executor.run(recorded(), holding([x, y]), file.fd, known, adding,
                         windows=[(0, 3), (N - 2, 2)])

    first, last = run_of(json.loads(json.dumps(reply)), file).results
    assert torch.equal(torch.cat([first, last]), (x + y)[[0, 1, 2, -2, -1]])


def test_a_measurement_crosses_with_its_results(known):
    file = MemoryFile("results")
    sets = [holding(inputs(seed)) for seed in range(2)]
    device = Fake()

    def launching(kernel: Any, launch: Launch, bound: Any) -> None:
        device.now += 0.5
        adding(kernel, launch, bound)

    reply = executor.measure([recorded()], sets, file.fd, known, launching, device)

    found = timed_of(json.loads(json.dumps(reply)), file)
    assert found.measurement is not None
    assert found.measurement.ms == pytest.approx(0.5)
    assert found.configurations == (found.measurement,)
    assert [torch.equal(result, sum(inputs(seed)))
            for seed, (result,) in enumerate(found.results)] == [True, True]


@pytest.mark.parametrize("change", [
    {"measurement": {}}, {"configurations": [1]}, {"results": [[["float32", [4], 0, 16]]]},
    {"findings": 3}, {"untimed": None},
], ids=str)
def test_a_forged_measurement_is_no_reply(change):
    whole = {"status": "done", "findings": [], "measurement": None, "configurations": [],
             "results": [], "untimed": []}
    assert timed_of(whole, MemoryFile("results")).results == ()

    with pytest.raises(Stopped):
        timed_of({**whole, **change}, MemoryFile("results"))


def test_requests_are_answered_from_files_to_files(tmp_path):
    (tmp_path / "kernel.py").write_text(SOURCE)
    device, sets = Fake(), [inputs(seed) for seed in range(2)]

    def launching(kernel: Any, launch: Launch, bound: Any) -> None:
        device.now += 0.25
        adding(kernel, launch, bound)

    handler = executor.GpuHandler("cpu", lambda: launching, device)
    recording = to_json(recorded())
    loaded = handler.handle({"op": "load", "path": str(tmp_path / "kernel.py")}, [])
    file = MemoryFile("results")
    with arena.pack(sets[0]) as first, arena.pack(sets[1]) as second:
        ran = handler.handle({"op": "run", "recording": recording, "layouts": [first.layout()],
                              "poison": 1}, [first.fd, file.fd])
        run = run_of(json.loads(json.dumps(ran)), file)
        measured = handler.handle(
            {"op": "measure", "recordings": [recording, recording],
             "layouts": [first.layout(), second.layout()], "windows": [[5, 2]]},
            [first.fd, second.fd, file.fd])
        timed = timed_of(json.loads(json.dumps(measured)), file)
        broken = handler.handle({"op": "run", "recording": recording, "layouts": [[]]},
                                [first.fd, file.fd])

    assert loaded == {"status": "ready"}
    assert torch.equal(run.results[0], sum(sets[0]))
    assert timed.measurement is not None and timed.measurement.ms == pytest.approx(0.25)
    assert len(timed.configurations) == 2
    assert [torch.equal(result, sum(given)[5:7])
            for (result,), given in zip(timed.results, sets, strict=True)] == [True, True]
    assert broken["status"] == "malformed"


def test_launches_are_compiled_ahead_and_refusals_are_left_to_their_runs(tmp_path):
    (tmp_path / "kernel.py").write_text(SOURCE)
    handler = executor.GpuHandler("cpu", clock=Fake())
    handler.handle({"op": "load", "path": str(tmp_path / "kernel.py")}, [])
    recordings = [recorded(), recorded(num_warps=8), recorded(num_warps=3),
                  recorded(kernel="missing_kernel")]
    h100 = targets.find("h100")

    with stub_driver.pretending(h100):
        reply = handler.handle({"op": "compile", "recordings": list(map(to_json, recordings))}, [])
        warps = []
        for recording in recordings[:3]:
            kernel, bound = without_memory(handler.kernels).bind(recording.launches[0])
            with suppress(Exception):  # of three warps, a refusal is kept
                code = kernel.run(grid=(1, 1, 1), warmup=True, enable_fp_fusion=True, **bound,
                                  **recording.launches[0].options)
                warps.append(code.metadata.num_warps)
        compiled = kernel.device_caches[h100.capability][0]

    assert reply == {"status": "done"}
    assert warps == [4, 8]
    assert sum("cubin" in getattr(code, "asm", {}) for code in compiled.values()) == 2


@pytest.mark.parametrize("said, code", [
    ("CUDA error: an illegal memory access was encountered\nmore", "M01"),
    ("Triton Error [CUDA]: misaligned address", "M01"),
    ("CUDA error: unspecified launch failure", "R03"),
])
def test_a_broken_context_is_a_finding(said, code):
    reply = executor.faulted(RuntimeError(said))

    assert reply["status"] == "faulted"
    assert reply["findings"][0]["code"] == code
    assert "\n" not in reply["findings"][0]["data"]["figures"]["text"]


@pytest.mark.parametrize("request_, why", [
    ({"op": "dance"}, "unknown request"),
    ({"op": "run"}, "before a load"),
    ({"op": "measure", "layouts": []}, "before a load"),
])
def test_strange_requests_are_malformed(request_, why):
    assert why in executor.GpuHandler().handle(request_, [])["why"]


def test_a_machine_without_a_gpu_says_why(sandbox: Sandbox) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")

    with client.process(sandbox) as ask, pytest.raises(client.NoGpu, match=r"CUDA|GPU|NVIDIA"):
        client.look(ask)


def test_the_process_before_the_gpu_is_confined(sandbox: Sandbox, tmp_path: Path) -> None:
    """Its first request confines it, and it goes on answering."""
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    os.chmod(tmp_path, 0o755)  # noqa: PTH101

    with sandbox.fork("gpu") as child:
        loaded = child.ask({"op": "load", "path": str(path)})
        again = child.ask({"op": "measure"})

    assert loaded["status"] == "ready"
    assert again["status"] == "malformed"


# ---------------------------------------------------------------------------------------------
# Ceilings that are kept


GPU = Gpu("NVIDIA H200", "GPU-1", "580", (9, 0), 60 << 20, 132, 140 << 30)


def ceilings_of(copy: float = 4000.0, uuid: str = "GPU-1", driver: str = "580",
                torch_version: str = "2.11") -> Ceilings:
    gpu = Gpu("NVIDIA H200", uuid, driver, (9, 0), 60 << 20, 132, 140 << 30)
    return Ceilings(gpu, copy, 760.0, "2026-11-22T10:00:00+0000",
                    {"torch": torch_version, "triton": "3.6", "driver": driver})


class Answers:
    """Stands for the process before a GPU."""

    def __init__(self, copy: float) -> None:
        self.copy = copy
        self.asked: list[str] = []

    def __call__(self, request: dict[str, Any], fds: Any, seconds: float,
                 what: str) -> dict[str, Any]:
        again = request.get("again")
        self.asked.append(request["op"] + (" again" if again else ""))
        if request["op"] == "look":
            return {"status": "done", "gpu": GPU.to_dict(),
                    "versions": {"torch": "2.11", "triton": "3.6"}}
        if again:
            return {"status": "done", "ceilings": ceilings_of(self.copy).to_dict()}
        return {"status": "done", "copy_gb_s": self.copy}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield tmp_path / "tritonlab" / "ceilings.json"


def test_ceilings_are_measured_at_first_use_and_kept(cache):
    asking = Answers(4000.0)

    first, second = client.ceilings(asking), client.ceilings(asking)

    assert first == second == ceilings_of()
    assert asking.asked == ["look", "ceilings again", "look", "ceilings"]
    assert client.cache() == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600


def test_ceilings_that_drift_are_measured_again(cache):
    client.keep(ceilings_of(4000.0))
    near, far = Answers(3900.0), Answers(3500.0)

    assert client.ceilings(near).copy_gb_s == 4000.0
    assert client.ceilings(far).copy_gb_s == 3500.0
    assert far.asked[-1] == "ceilings again"
    assert len(client.kept()) == 1


def test_ceilings_belong_to_gpu_driver_and_versions(cache):
    for other in (ceilings_of(uuid="GPU-2"), ceilings_of(driver="590"),
                  ceilings_of(torch_version="2.13")):
        client.keep(other)

    assert client.find(GPU, {"torch": "2.11", "triton": "3.6"}) is None
    client.keep(ceilings_of())
    assert client.find(GPU, {"torch": "2.11", "triton": "3.6"}) == ceilings_of()
    assert len(client.kept()) == 4


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ceilings": [{}]}', '{"ceilings": 3}'])
def test_a_broken_cache_holds_nothing(cache, text):
    cache.parent.mkdir(parents=True)
    cache.write_text(text)

    assert client.kept() == []
    client.keep(ceilings_of())
    assert client.kept() == [ceilings_of()]


def test_what_is_timed_runs_alone_and_all_else_side_by_side(cache, monkeypatch):
    waits: list[float] = []
    ticks = itertools.count(step=client.TURN_S / 9)
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: next(ticks),
                                                        sleep=waits.append))

    def waited(alone: bool) -> bool:
        waits.clear()
        with client.turn(alone=alone):
            return bool(waits)

    with client.turn(alone=False):
        assert not waited(alone=False)
        assert waited(alone=True)
    with client.turn(alone=True):
        assert waited(alone=False)
    assert not waited(alone=True)


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    client.keep(ceilings_of())

    assert client.kept() == []


@pytest.mark.parametrize("reply, why", [
    ({"status": "none", "why": "no driver"}, "no driver"),
    ({"status": "small", "why": "out of memory"}, "does not hold it"),
    ({"status": "broken", "traceback": "ours"}, "ours"),
    ({"status": "done", "gpu": {"name": 3}}, "strangely"),
])
def test_what_a_gpu_cannot_tell_has_a_reason(reply, why):
    with pytest.raises(client.NoGpu, match=why):
        client.look(lambda *_: reply)


# ---------------------------------------------------------------------------------------------
# On a real one


REAL = """
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def scaled_kernel(x_ptr, out_ptr, n, scale, limit, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * scale, mask=offs < limit)


def scaled(x, scale=1.0, beyond=0, **options):
    out = torch.empty_like(x)
    n = x.numel()
    scaled_kernel[(triton.cdiv(n + beyond, 1024),)](
        x, out, n, scale, n + beyond, BLOCK=1024, **options)
    return out


@triton.jit
def wild_kernel(x_ptr, out_ptr):
    tl.store(out_ptr + 1_000_000_000_000, tl.load(x_ptr))


def wild(x):
    out = torch.empty_like(x)
    wild_kernel[(1,)](x, out)
    return out


@triton.jit
def endless_kernel(x_ptr, out_ptr):
    value = tl.load(x_ptr)
    while value > -1.0:
        value = tl.load(x_ptr, volatile=True)
    tl.store(out_ptr, value)


def endless(x):
    out = torch.empty_like(x)
    endless_kernel[(1,)](x, out)
    return out


@triton.jit
def wide_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + rows[:, None] * BLOCK + rows[None, :])
    tl.store(out_ptr + rows[:, None] * BLOCK + rows[None, :], tl.dot(a, a))


def wide(x):
    out = torch.empty_like(x)
    wide_kernel[(1,)](x, out, BLOCK=x.shape[0])
    return out


@triton.jit
def boxes_kernel(x, out_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    tl.store(out_ptr + rows[:, None] * BLOCK + rows[None, :], x.load([0, 0]))


def boxes(x):
    out = torch.empty_like(x)
    side = x.shape[0]
    boxes_kernel[(1,)](TensorDescriptor.from_tensor(x, [side, side]), out, BLOCK=side)
    return out


@triton.jit
def made_there_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [BLOCK, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    rows = tl.arange(0, BLOCK)
    tl.store(out_ptr + rows[:, None] * BLOCK + rows[None, :], x.load([0, 0]))


def made_there(x):
    out = torch.empty_like(x)
    made_there_kernel[(1,)](x, out, BLOCK=x.shape[0])
    return out


@triton.jit
def copied_first_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(out_ptr + offs, mask=mask) + tl.load(x_ptr + offs, mask=mask),
             mask=mask)


def copied_first(x):
    out = torch.zeros_like(x)
    out[: 10] = x[: 10]
    copied_first_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))


def summed(x):
    out = torch.zeros(1, dtype=x.dtype, device=x.device)
    sum_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""


@pytest.fixture(scope="module")
def on_gpu(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Sessions of the functions of a file, before a GPU."""
    if not client.present():
        pytest.skip("no driver of a GPU is there")
    path = tmp_path_factory.mktemp("real") / "kernel.py"
    path.write_text(REAL)
    with Session(source.read(path), "scaled", sandbox) as session:
        try:
            session.look()
        except client.NoGpu as error:
            pytest.skip(str(error))
        yield session


def called(session: Session, entry: str, x: torch.Tensor, *more: Any,
           parameters: tuple[str, ...] = ("x",)) -> tuple[Session, Recording]:
    other = session.of(Function(entry, parameters))
    outcome = other.record([x, *more], as_they_are=True)
    assert unusable(outcome) == [] and outcome.recording is not None
    return other, outcome.recording


@pytest.mark.gpu
@pytest.mark.parametrize("entry, x, expected", [
    ("scaled", torch.arange(5000.0), lambda x: x),
    ("boxes", torch.arange(1024.0).view(32, 32), lambda x: x),
    ("made_there", torch.arange(1024.0).view(32, 32), lambda x: x),
    ("copied_first", torch.arange(1000.0), lambda x: torch.cat([2 * x[:10], x[10:]])),
    ("wide", torch.ones(16, 16), lambda x: 16 * x),
], ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("poison", [0, 1])
def test_a_gpu_runs_what_was_recorded(on_gpu, entry, x, expected, poison):
    session, recording = called(on_gpu, entry, x)

    run = session.run_on_gpu(recording, [x], poison=poison)

    assert run.findings == ()
    assert torch.equal(run.results[0], expected(x))


@pytest.mark.gpu
def test_a_gpu_gets_floats_exactly(on_gpu):
    x = torch.ones(1)
    session, recording = called(on_gpu, "scaled", x, 0.1, parameters=("x", "scale"))

    run = session.run_on_gpu(recording, [x])

    assert run.results[0].item() == torch.tensor(0.1).item()


@pytest.mark.gpu
def test_a_gpu_that_stores_past_the_end_is_seen(on_gpu):
    x = torch.ones(1024)
    session, recording = called(on_gpu, "scaled", x, 1.0, 24, parameters=("x", "scale", "beyond"))

    [finding] = session.run_on_gpu(recording, [x]).findings

    assert finding.code == "M02"
    assert "stored 96 bytes past the end of `out_ptr`, 0 to 23 elements away" in finding.seen


@pytest.mark.gpu
def test_a_broken_context_costs_one_run(on_gpu):
    x = torch.ones(4)
    session, recording = called(on_gpu, "wild", x)

    with pytest.raises(Stopped) as stopped:
        session.run_on_gpu(recording, [x])

    assert stopped.value.finding.code in ("M01", "R03")
    session, recording = called(on_gpu, "scaled", x)
    assert torch.equal(session.run_on_gpu(recording, [x]).results[0], x)


@pytest.mark.gpu
def test_a_kernel_without_end_costs_one_run(on_gpu, monkeypatch):
    x = torch.ones(4)
    monkeypatch.setattr(session_module, "GPU_RUN_S", 8.0)
    session, recording = called(on_gpu, "endless", x)

    with pytest.raises(Stopped) as stopped:
        session.run_on_gpu(recording, [x])

    assert stopped.value.finding.code == "R02"
    session, recording = called(on_gpu, "scaled", x)
    assert torch.equal(session.run_on_gpu(recording, [x]).results[0], x)


@pytest.mark.gpu
def test_what_does_not_compile_is_told_in_the_compilers_words(on_gpu):
    x = torch.ones(24, 24)
    session, recording = called(on_gpu, "wide", x)

    [finding] = session.run_on_gpu(recording, [x]).findings

    assert finding.code == "L05"
    assert "power of 2" in finding.seen


@pytest.mark.gpu
def test_a_gpu_is_timed_near_the_speed_of_its_copy(on_gpu):
    sets = [[torch.randn(1 << 26, generator=torch.Generator().manual_seed(seed))]
            for seed in range(2)]
    session, recording = called(on_gpu, "scaled", sets[0][0])

    timed = session.measure(recording, sets, windows=[(0, 1000)])
    reached = session.ceilings()

    assert timed.findings == ()
    assert timed.measurement is not None and timed.measurement.graph
    assert timed.measurement.repeats >= 20
    part = 2 * 4 * (1 << 26) / timed.measurement.ms / 1e6 / reached.copy_gb_s
    assert 0.5 < part < 1.3
    for [x], [result] in zip(sets, timed.results, strict=True):
        assert torch.equal(result, x[:1000])


@pytest.mark.gpu
def test_a_small_call_is_timed_among_many(on_gpu):
    sets = [[torch.randn(4096)] for _ in range(2)]
    session, recording = called(on_gpu, "scaled", sets[0][0])

    timed = session.measure(recording, sets)

    assert timed.measurement is not None
    assert 0.0003 < timed.measurement.ms < 0.02


@pytest.mark.gpu
def test_sums_in_any_order_are_left_to_the_judge(on_gpu):
    sets = [[torch.randn(1 << 20)] for _ in range(2)]
    session, recording = called(on_gpu, "summed", sets[0][0])

    timed = session.measure(recording, sets)

    assert timed.findings == ()
    for [x], [result] in zip(sets, timed.results, strict=True):
        assert result.item() == pytest.approx(x.double().sum().item(), abs=0.05)


@pytest.mark.gpu
def test_ceilings_of_a_gpu_are_measured_and_kept(on_gpu, cache):
    first = on_gpu.ceilings()

    assert first == on_gpu.ceilings()
    assert cache.exists()
    assert first.matmul_tflops > first.fp32_tflops > 0
    assert (first.fp8_tflops > first.matmul_tflops) == (first.gpu.capability >= (8, 9))


def test_recordings_fit_a_request():
    assert len(json.dumps(to_json(recorded()))) < 1000
    assert same(torch.ones(3), torch.ones(3))
