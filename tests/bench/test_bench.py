"""`tritonlab bench`: what is timed and what is not, by which clock, and how it is shown."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pytest
import torch
from matplotlib.text import Text

import grader
from grader.bench import bench as the_bench
from grader.bench import torch_baselines
from grader.bench.bench import Measured, Predicted, bench, measuring
from grader.bench.benchmark import COMPILED, REFERENCE, TORCH, YOURS, Roof, Speed, Without
from grader.diagnosis.difference import as_tuple, in_reals
from grader.engine.compiler import targets
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Ceilings, Gpu, Measurement
from grader.gpu import client, detect
from grader.judge.case import value_cases
from grader.judge.draws import Draws, rolled
from grader.processes.replies import Timed
from grader.processes.session import Session
from grader.recording.arena import SparseTensor
from grader.recording.model import dtype_name
from grader.report import Finding
from grader.suite import EXACT, Tolerance, load
from grader.suite.rounding import UNIT_ROUNDOFF
from tests.support import benched
from tritonlab.course import course
from tritonlab.grading import kernels as face
from tritonlab.render import bench_text as view
from tritonlab.render import bench_text as words
from tritonlab.render import charts, pages
from tritonlab.render.screen import Screen

ROOT = Path(__file__).parents[2]
SUITES = sorted((ROOT / "grader" / "suites").glob("*/*/suite.py"))
VECTOR_ADD = "missing-elements/01-vector-add"
SOFTMAX = "missing-elements/03-softmax"


def suite_of(module: str):
    return load(ROOT / "grader" / "suites" / module / "suite.py")


def solution(module: str) -> Path:
    return ROOT / "solutions" / module / "kernel.py"


def shortened(suite, *sizes: int):
    """The same suite with one function, timed at these sizes, and two cases of values."""
    return replace(suite, bench=replace(suite.bench, sizes=sizes),
                   cases=[case for case in suite.cases if case.public][:2])


# ------------------------------------------------------------ what suites say


@pytest.mark.parametrize("path", SUITES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_every_function_says_on_what_it_is_timed(path):
    suite = load(path)

    for part in suite.parts:
        if not part.entry or (part.drives and part.bench is None):
            continue  # some of several jobs of one function are timed
        made = part.bench
        assert made is not None, part.entry
        assert list(made.sizes) == sorted(set(made.sizes))
        assert len(made.sizes) >= 3
        costs = [part.cost(*the_bench._outlines(suite, part, made, size)) for size in made.sizes]
        assert [cost.bytes for cost in costs] == sorted({cost.bytes for cost in costs})
        assert costs[-1].bytes < 1 << 30, "two sets of inputs have to fit small machines"


@pytest.mark.parametrize("path", SUITES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_what_torch_is_asked_for_is_the_same_job(path):
    suite = load(path)

    for part in the_bench.benched(suite):
        inputs = Draws(suite.name, "5").draw("peer", part.bench.inputs(16))
        results = as_tuple((part.bench.peer or part.peer)(*inputs))

        exact = as_tuple(part.reference(*inputs))
        assert len(results) == len(exact)
        for result, right in zip(results, exact, strict=True):
            near = max(2e-2, UNIT_ROUNDOFF.get(dtype_name(result.dtype), 0.0))  # float8 has 4 bits
            torch.testing.assert_close(in_reals(result).double(),
                                       in_reals(right).double(), rtol=near, atol=2e-2)


def test_a_second_set_of_inputs_is_another_one_of_the_same_form():
    x = torch.arange(12.0).view(3, 4).mT

    other, number = rolled([x, 2.5])

    assert (other.shape, other.stride(), number) == (x.shape, x.stride(), 2.5)
    assert not torch.equal(other, x)
    assert sorted(other.flatten().tolist()) == sorted(x.flatten().tolist())


# ------------------------------------------------------------ what is timed


def test_all_contenders_are_timed_at_all_sizes(sandbox):
    suite = shortened(suite_of(VECTOR_ADD), 1 << 10, 1 << 12)
    clock = benched.FakeClock()
    told = []

    found = bench(solution(VECTOR_ADD), suite, clock, solution=solution(VECTOR_ADD),
                  sandbox=sandbox, on_event=told.append)

    [chart] = found.charts
    assert [one.who for one in chart.contenders] == [YOURS, REFERENCE, TORCH, COMPILED]
    assert all(list(one.speeds) == [1 << 10, 1 << 12] for one in chart.contenders)
    assert told[0] == "values of vector_add"
    assert "vector_add, 4,096 elements: PyTorch" in told
    assert found.exit_code == 0
    assert json.loads(json.dumps(found.to_dict()))["functions"][0]["unit"] == "B/s"


def test_wrong_values_are_not_timed(sandbox, tmp_path):
    wrong = tmp_path / "kernel.py"
    wrong.write_text(solution(VECTOR_ADD).read_text().replace("x + y", "x - y"))
    suite = shortened(suite_of(VECTOR_ADD), 1 << 10)
    clock = benched.FakeClock(kernels=[REFERENCE])

    found = bench(wrong, suite, clock, solution=solution(VECTOR_ADD), sandbox=sandbox)

    mine = found.charts[0].contenders[0]
    assert (mine.who, mine.speeds) == (YOURS, {})
    assert mine.wrong.name == suite.cases[0].name
    assert mine.findings[0].code == "N01"
    assert YOURS not in {who for who, _ in clock.asked}
    assert found.exit_code == 1


def test_a_wrong_file_is_diagnosed_as_by_a_grade(sandbox, tmp_path):
    module = "missing-elements/03-softmax"
    suite = suite_of(module)
    mistake = next(mutant for mutant in suite.mutants if mutant.id == "b")
    wrong = tmp_path / "kernel.py"
    wrong.write_text(mistake.apply(solution(module).read_text()))

    found = bench(wrong, suite, benched.FakeClock(), sandbox=sandbox)

    assert found.charts[0].contenders[0].wrong.findings[0].means == mistake.meaning


def test_an_unfinished_file_leaves_the_others_to_be_timed(sandbox):
    exercise = ROOT / "tracks" / VECTOR_ADD / "kernel.py"
    suite = shortened(suite_of(VECTOR_ADD), 1 << 10)

    found = bench(exercise, suite, benched.FakeClock(kernels=[REFERENCE]),
                  solution=solution(VECTOR_ADD), sandbox=sandbox)

    assert found.findings[0].code == "P01"
    assert [one.who for one in found.charts[0].timed] == [REFERENCE, TORCH, COMPILED]
    assert found.exit_code == 1


def test_what_cannot_be_timed_says_why(sandbox):
    suite = shortened(suite_of(VECTOR_ADD), 1 << 10)
    clock = benched.FakeClock(found={COMPILED: Without("torch raised: no."),
                                     YOURS: Without(findings=(Finding("L05", "It does not."),))})

    found = bench(solution(VECTOR_ADD), suite, clock, solution=solution(VECTOR_ADD),
                  sandbox=sandbox)

    chart = found.charts[0]
    assert [one.who for one in chart.timed] == [REFERENCE, TORCH]
    assert list(words.missing(chart)) == [
        "Your kernel has no time for 1,024 elements: It does not.",
        "torch.compile has no time for 1,024 elements: torch raised: no."]
    assert found.exit_code == 1


def test_one_function_of_several_can_be_timed_alone(sandbox):
    suite = suite_of("mastery/01-custom-kernels")
    clock = benched.FakeClock(measured=False)
    glu = next(part for part in the_bench.benched(suite) if part.entry == "glu")
    assert value_cases(glu)

    found = bench(ROOT / "tracks/mastery/01-custom-kernels/kernel.py", suite, clock,
                  function="glu", sandbox=sandbox)

    assert [chart.function for chart in found.charts] == ["glu"]


# ------------------------------------------------------------ the clocks


def test_without_a_gpu_compiled_code_predicts(sandbox):
    suite = shortened(suite_of(VECTOR_ADD), 1 << 12, 1 << 24)
    clock = Predicted(targets.find("h200"))

    found = bench(solution(VECTOR_ADD), suite, clock, solution=solution(VECTOR_ADD),
                  sandbox=sandbox)

    [chart] = found.charts
    assert [one.who for one in chart.contenders] == [YOURS, REFERENCE]
    small, large = (chart.share(size, speed) for size, speed in chart.timed[0].speeds.items())
    assert small < 0.2 < 0.7 < large < 1.1
    assert all(not speed.repeats for one in chart.timed for speed in one.speeds.values())
    assert "predicted for an NVIDIA H200 SXM" in words.promise(found)
    assert "cannot be predicted" in words.introduction(found)


GPU = Gpu("NVIDIA H200", "GPU-1", "580", (9, 0), 60 << 20, 132, 150 << 30)
CEILINGS = Ceilings(GPU, 4280.0, 722.0, "2026-11-22T00:00:00+0000", {"torch": "2.13"}, 380.0, 51.0)


class NoPeers:
    def measure(self, function, size, *, compiled):
        return "None here." if compiled else Measurement(0.02, 0.019, 0.024, 40, True)


def measured(monkeypatch, ms: float = 0.01, **more) -> Measured:
    """The clock of a GPU that runs launches by the interpreter and always takes as long."""

    def measure(self, recording, sets, *, others=(), windows=None):
        runs = [self.replay(recording, inputs) for inputs in sets]
        return Timed((), Measurement(ms, ms, ms, 40, True, **more),
                     results=tuple(run.results for run in runs))

    monkeypatch.setattr(Session, "measure", measure)
    return Measured(CEILINGS, NoPeers())


def test_a_gpu_times_recordings_and_their_results_are_compared(sandbox, monkeypatch):
    suite = shortened(suite_of(SOFTMAX), 16)
    suite = replace(suite, bench=replace(suite.bench, inputs=lambda n: (grader_rand(4, n),)))
    clock = measured(monkeypatch, throttled="thermal")

    found = bench(solution(SOFTMAX), suite, clock, solution=solution(SOFTMAX), sandbox=sandbox)

    [chart] = found.charts
    mine = chart.timed[0].speeds[16]
    assert (mine.seconds, mine.repeats, mine.note) == (1e-5, 40, "held back: thermal")
    assert chart.roof == Roof("NVIDIA H200", True, 4.28e12, 51e12, "fp32")
    assert chart.contenders[2].speeds[16].note == "spread 25 %"
    assert chart.contenders[3].without == {16: Without("None here.")}
    assert found.of["ceilings"]["copy_gb_s"] == 4280.0


def grader_rand(*sizes: int):
    from grader.suite import rand

    return rand(*sizes)


def test_wrong_results_of_timed_runs_are_a_finding(sandbox, monkeypatch):
    suite = shortened(suite_of(VECTOR_ADD), 64)
    clock = measured(monkeypatch)
    right = suite.reference
    monkeypatch.setattr(the_bench, "_first_wrong", lambda part, ctx: None)
    off = replace(suite, reference=lambda x, y: right(x, y) + 1)

    found = bench(solution(VECTOR_ADD), off, clock, sandbox=sandbox)

    assert found.charts[0].contenders[0].findings[0].seen.endswith("Observed in a timed run.")
    assert found.exit_code == 1


def test_a_time_that_cannot_be_is_none(sandbox, monkeypatch):
    suite = shortened(suite_of(VECTOR_ADD), 1 << 24)
    clock = measured(monkeypatch, ms=1e-6)
    monkeypatch.setattr(the_bench, "_wrong", lambda *_: None)
    monkeypatch.setattr(Session, "measure", lambda self, recording, sets, **more: Timed(
        (), Measurement(1e-6, 1e-6, 1e-6, 40, True)))

    found = bench(solution(VECTOR_ADD), suite, clock, sandbox=sandbox)

    assert "the work was not done" in found.charts[0].contenders[0].without[1 << 24].reason


def test_no_gpu_is_a_reason_and_no_failure(sandbox, monkeypatch):
    monkeypatch.setattr(detect, "present", lambda: False)

    with pytest.raises(client.NoGpu, match="no GPU was found"), \
            measuring(sandbox, SUITES[0]):
        pass


def test_units_follow_the_widest_input():
    full, half = SparseTensor(torch.empty(1, device="meta")), torch.zeros(1, dtype=torch.float16)

    assert measurement.units_of([half, 3], EXACT) == "fp16"
    assert measurement.units_of([half, full], EXACT) == "fp32"
    assert measurement.units_of([full], Tolerance(tf32=True)) == "tf32"
    assert measurement.units_of([torch.zeros(1, dtype=torch.complex64)], EXACT) == "fp32"
    assert measurement.units_of([3], EXACT) == "fp16"


def test_units_are_those_of_the_matrices_and_not_of_what_they_are_scaled_by():
    small, scale = torch.zeros(1, dtype=torch.float8_e5m2), torch.zeros(1)

    assert measurement.units_of([small, small], EXACT) == "fp8"
    assert measurement.units_of([small, small, scale], EXACT) == "fp32"
    assert measurement.units_of([small, small, scale], Tolerance(products=(0, 1))) == "fp8"


# ------------------------------------------------------------ torch, in its own process


def answers(module: str) -> torch_baselines.Answers:
    def time_calls(calls):
        for call in calls:
            call()
        return Measurement(1.0, 1.0, 1.0, len(calls), False)

    return torch_baselines.Answers(suite_of(module), time_calls, "cpu")


def test_torch_is_timed_on_two_sets_of_inputs():
    asked = answers(VECTOR_ADD)

    reply = asked.reply({"function": "vector_add", "size": 64, "compiled": False})
    again = asked._sets

    assert Measurement.from_dict(reply["measurement"]).repeats == 2
    asked.reply({"function": "vector_add", "size": 64, "compiled": False})
    assert asked._sets is again


def test_what_torch_does_not_take_is_said(monkeypatch):
    def refuse(*_: object, **__: object) -> object:
        raise RuntimeError("not this\nand more")

    monkeypatch.setattr(torch, "compile", refuse)

    reply = answers(VECTOR_ADD).reply({"function": "vector_add", "size": 64, "compiled": True})

    assert reply == {"why": "torch raised RuntimeError: not this"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, so that it does answer")
def test_a_process_that_ends_costs_its_own_times_only():
    with torch_baselines.Peers(SUITES[0]) as process:
        got = process.measure("scale", 64, compiled=False)

    assert isinstance(got, str)
    assert got.startswith("The process that times torch ended unexpectedly: ")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_torch_answers_before_a_gpu():
    path = ROOT / "grader" / "suites" / VECTOR_ADD / "suite.py"
    with torch_baselines.Peers(path) as process:
        got = [process.measure("vector_add", 1 << 16, compiled=way) for way in (False, True)]

    assert all(isinstance(one, Measurement) for one in got), got


# ------------------------------------------------------------ on a terminal


def shown(found, width: int = 100, *, plain: bool = False, module: str = "track1/softmax") -> str:
    import io

    stream = io.StringIO()
    the_module = course.load().find(module)
    view.show(Screen(stream, width=width, plain=plain), the_module, found, ())
    return stream.getvalue()


def test_the_table_has_every_time_with_its_percentiles_and_share():
    text = shown(benched.benchmark(SOFTMAX))

    row = next(line for line in text.splitlines() if line.lstrip().startswith("16,384"))
    assert row.split() == ["16,384", "yours", "163", "µs", "161", "µs", "168", "µs", "3.29", "TB/s",
                           "76.9", "%"]
    assert "of copy" in text
    assert "Measured on this NVIDIA H200. " in text
    assert "PyTorch is torch.softmax." in text
    assert "your kernel reaches 0.84 of the speed of the reference solution" in text


@pytest.mark.parametrize("width", [40, 58, 80, 100, 200])
def test_the_plot_keeps_to_the_terminal(width):
    for row in view.plot(benched.benchmark(SOFTMAX).charts[0], width):
        text = "".join(part if isinstance(part, str) else part[0] for part in row)
        assert len(text.rstrip()) <= max(width, 34)


def test_the_plot_has_a_mark_for_each_time_and_names_the_ceiling():
    chart = benched.benchmark("missing-elements/02-matrix-mul").charts[0]

    text = "\n".join("".join(part if isinstance(part, str) else part[0] for part in row)
                     for row in view.plot(chart, 90))
    legend = "".join(part if isinstance(part, str) else part[0]
                     for row in words.legend(chart) for part in row)

    assert text.count("●") == len(chart.needed)
    assert text.splitlines()[0].strip() == "TFLOP/s"
    assert "● yours   ◆ reference   ▲ PyTorch   ■ torch.compile" in legend
    assert "ceiling of the NVIDIA H200: copy 4.28 TB/s or matmul 722 TFLOP/s" in legend


def test_a_narrow_terminal_leaves_percentiles_out():
    text = shown(benched.benchmark(SOFTMAX), 50)

    assert "p80" not in [word for line in text.splitlines()[3:] for word in line.split()]


def test_notes_stand_once_below_the_table():
    found = benched.benchmark(SOFTMAX)
    chart = found.charts[0]
    mine, *others = chart.contenders
    speeds = {size: replace(speed, note="held back: power cap") if size > 8_192 else speed
              for size, speed in mine.speeds.items()}
    found = replace(found, charts=(replace(
        chart, contenders=(replace(mine, speeds=speeds), *others)),))

    assert "Held back: power cap: yours at 12,345 and 16,384." in " ".join(shown(found).split())
    assert "26.6 % of copy" in shown(found, plain=True)


def test_plain_mode_is_one_fact_a_line():
    text = shown(benched.benchmark(SOFTMAX), plain=True)

    assert "softmax, 256 columns, yours: 7.36 µs (p20 7.25 µs, p80 7.58 µs, 40 repeats), " \
           "1.14 TB/s, 26.6 % of copy" in text
    assert "●" not in text


def test_predicted_times_say_so_and_that_torch_cannot_be_predicted():
    found = replace(benched.benchmark(SOFTMAX, measured=False), why="no GPU was found")

    text = " ".join(shown(found).split())

    assert ("Predicted for an NVIDIA H200 from compiled code, not measured: no GPU was found."
            in text)
    assert "What PyTorch and torch.compile would take cannot be predicted" in text
    assert "p20" not in text
    assert "is predicted to reach 0.84 of the speed of the reference solution." in text


def test_of_many_functions_none_is_drawn_unless_it_is_named():
    text = shown(benched.benchmark("mastery/01-custom-kernels"))

    assert "●" not in text
    assert "With `--function NAME` one of them is drawn too." in text


def test_a_wrong_function_is_shown_with_its_finding():
    found = benched.benchmark(SOFTMAX)
    chart = found.charts[0]
    mine = replace(chart.contenders[0], speeds={}, wrong=benched.wrong())
    found = replace(found, charts=(replace(chart, contenders=(mine, *chart.contenders[1:])),))

    text = " ".join(shown(found).split())

    assert "Your kernel was not timed, as its values are wrong: 4 x 127." in text
    assert "Not timed: softmax (wrong-values)" in text
    assert "3 of 128 elements are wrong." in text
    assert found.exit_code == 1


# ------------------------------------------------------------ pictures and pages


class Page(html.parser.HTMLParser):
    """Whether all tags are closed, and which ids there are."""

    void = ("meta", "br", "hr", "col", "wbr", "path", "use", "circle", "line", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.drawings = 0

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        self.drawings += tag == "svg"
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag


@pytest.mark.parametrize(("module", "measured"), [
    (SOFTMAX, True), ("mastery/01-custom-kernels", False), ("optimization/01-tiling", True)])
def test_the_page_is_whole_and_takes_its_colours_from_the_reader(module, measured):
    the_module = next(m for m in course.load().modules if str(m.suite.parent).endswith(module))

    text = pages.benchmark(the_module, benched.benchmark(module, measured=measured))

    parsed = Page()
    parsed.feed(text)
    assert not parsed.open
    assert len(parsed.ids) == len(set(parsed.ids))
    assert parsed.drawings == 2  # one for wide windows, one for narrow ones
    assert not re.search("fe000[1-8]", text)
    assert "var(--yours)" in text
    assert "prefers-color-scheme: dark" in text
    assert "ceiling of the NVIDIA H200" in text.casefold().replace("nvidia h200", "NVIDIA H200")
    assert ("predicted, not measured" in text or "; predicted" in text) is not measured


def test_the_picture_names_axes_units_device_and_ridge():
    drawn = charts.benchmark_svgs(benched.benchmark(SOFTMAX), "softmax")[0]

    for said in ("Roofline of the NVIDIA H200", "arithmetic intensity (FLOP/B)",
                 "speed (FLOP/s)", "TB/s", "columns", "ridge 11.9 FLOP/B", "of float32 matmul",
                 "copy 4.28 TB/s",
                 "float32 matmul 51.0 TFLOP/s", "yours", "torch.compile"):
        assert f">{said}<" in drawn, said
    assert ">ceiling of the NVIDIA H200: copy 4.28 TB/s<" in drawn


def test_texts_of_a_picture_of_two_functions_stay_inside_and_apart():
    found = benched.benchmark("optimization/03-shared-memory", measured=False)
    title = "track2/shared-memory: On-chip memory: reuse and tree reductions"

    with mpl.rc_context(charts._STYLE):
        for figure in (charts._benchmark(found, title), charts._benchmark(found, narrow=True)):
            figure.canvas.draw()
            boxes = {text.get_text(): text.get_window_extent() for text in figure.findobj(Text)
                     if text.get_text() and text.get_visible() and not text.get_rotation()}
            right, top = 1.03 * figure.bbox.x1, figure.bbox.y1  # at 72 dpi, letters are wider
            assert not [words for words, box in boxes.items()
                        if box.x0 < 0 or box.x1 > right or box.y1 > top]
            apart = [box for words, box in boxes.items() if "FLOP/" in words or "B/s" in words]
            assert not any(one.overlaps(other) for one, other in itertools.combinations(apart, 2))


def test_what_only_moves_has_no_roofline():
    drawn = charts.benchmark_svgs(benched.benchmark("optimization/01-tiling"), "tiling")[0]

    assert "Roofline" not in drawn
    assert "batched_transpose has no place on the roofline" in " ".join(
        re.sub("<[^>]*>", " ", drawn).split())


def test_the_same_benchmark_is_drawn_the_same():
    found = benched.benchmark(SOFTMAX)

    assert charts.benchmark_svgs(found, "softmax") == charts.benchmark_svgs(found, "softmax")


def test_a_picture_is_a_png_that_is_not_empty():
    made = charts.benchmark_png(benched.benchmark(SOFTMAX), "track1/softmax: Stable softmax")

    assert made.startswith(b"\x89PNG")
    assert len(made) > 50_000


# ------------------------------------------------------------ the verb


@pytest.fixture
def typed(run, monkeypatch):
    """Type `tritonlab bench`; what is found is given."""

    def type_(found, *words_: str):
        asked = []

        def made(submission, **more):
            asked.append((submission, more))
            return found

        monkeypatch.setattr(face, "bench", made)
        run("start", "softmax")
        type_.asked = asked
        return run("bench", *words_)

    return type_


def test_the_verb_writes_page_and_picture_where_it_is_told(typed):
    answer = typed(benched.benchmark(SOFTMAX), "--html", "out.html", "--png", "out.png")

    assert answer.code == 0, answer.err
    assert Path("out.html").read_text().startswith("<!doctype html>")
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")
    assert "The picture is out.png" in answer.out


def test_the_verb_gives_json(typed):
    data = json.loads(typed(benched.benchmark(SOFTMAX), "--json").out)

    assert (data["schema"], data["measured"], data["module"]) == (1, True, "track1/softmax")
    times = data["functions"][0]["contenders"][0]["times"]
    assert times[0]["measured"] is True
    assert {"size", "seconds", "low", "high", "repeats", "rate", "share"} <= times[0].keys()


def test_a_target_is_predicted_for_even_with_a_gpu(typed):
    typed(benched.benchmark(SOFTMAX), "--target", "a100")
    assert typed.asked[0][1]["target"].name == "a100"

    typed(benched.benchmark(SOFTMAX), "--no-gpu")
    assert typed.asked[0][1]["target"] == detect.default_target()

    typed(benched.benchmark(SOFTMAX))
    assert typed.asked[0][1]["target"] is None


@pytest.mark.parametrize(("option", "path", "said"), [
    ("--png", "nowhere/x.png", "there is no such folder"),
    ("--png", "notes.txt", "already exists and is not a picture"),
    ("--html", "notes.txt", "already exists and is not a page"),
    ("--target", "tpu", "No target is called 'tpu'"),
])
def test_bad_options_end_before_anything_is_timed(typed, option, path, said, home):
    Path("notes.txt").write_text("mine")

    answer = typed(benched.benchmark(SOFTMAX), option, path)

    assert answer.code == 2
    assert said in answer.err
    assert not typed.asked
    assert Path("notes.txt").read_text() == "mine"


def test_a_module_without_a_benchmark_says_so(run):
    run("start", "softmax")

    answer = run("bench")

    assert answer.code == 2
    assert "track1/softmax has no benchmark" in answer.err


def test_an_unknown_function_is_told_which_there_are():
    module = course.load().find("track4/custom-kernels")

    with pytest.raises(face.TritonlabError, match=r"It has glu, swish\."):
        face.check(module, ["glu", "swish"], "gule")


def test_without_a_gpu_the_command_predicts_and_says_why(monkeypatch, sandbox):
    monkeypatch.setattr(detect, "present", lambda: False)
    module = course.load().find("track1/vector-add")
    monkeypatch.setattr(grader, "load_suite",
                        lambda path, *folders: shortened(load(path, *folders), 1 << 12))
    from tritonlab.workspace.submission import Submission

    found = face.bench(Submission(module, module.solution, None), sandbox=sandbox)

    assert not found.measured
    assert found.why == "no GPU was found"
    assert isinstance(next(iter(found.charts[0].timed[0].speeds.values())), Speed)
