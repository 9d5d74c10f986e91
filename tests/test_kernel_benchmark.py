"""Solutions against peers: who is timed, who is not, and what the times mean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.benchmarks import kernels
from tests.benchmarks.rows import TINY, Row
from tests.benchmarks.rows_fp8 import fp8_errors, fp8_exact, fp8_inputs
from tests.benchmarks.text import json_text

pytestmark = pytest.mark.course

ROOT = Path(__file__).parent.parent


def row(name: str, **who: Callable[..., Any]) -> Row:
    return Row(name, lambda scale, device: (torch.arange(1.0, 9.0),), lambda x: 2 * x.double(),
               lambda: {"solution": lambda x: 2 * x, "torch": lambda x: x + x, **who},
               least_bytes=lambda x: 2 * x.nbytes, goal=1.0)


def prepared(*rows: Row, seconds: float = 60.0) -> dict[str, dict[str, str]]:
    run = kernels.Run(rows, TINY, "cpu")
    return kernels.prepare(run, 2, time.monotonic() + seconds)


def test_what_is_wrong_or_raises_or_kills_its_process_is_told_and_the_rest_is_ready():
    def raises(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such thing")

    found = prepared(row("one", wrong=lambda x: 2 * x + (x == 3), raises=raises,
                         kills=lambda x: os._exit(3), last=lambda x: x + x), row("two"))

    assert found["one"]["wrong"].startswith("1 of 8 wrong")
    assert "no such thing" in found["one"]["raises"]
    assert found["one"]["kills"] == "the process ended with 3"
    assert [found["one"][who] for who in ("solution", "last", "the row")] == ["", "", ""]
    assert found["two"]["solution"] == found["two"]["the row"] == ""


def test_a_row_whose_inputs_cannot_be_made_is_not_timed_and_says_why():
    def too_large(scale: int, device: str) -> tuple[torch.Tensor]:
        raise RuntimeError("no memory for this")

    found = prepared(Row("large", too_large, lambda x: x, dict))

    assert "no memory for this" in found["large"]["the row"]


def test_a_row_that_is_not_ready_in_time_is_not_timed():
    found = prepared(row("slow", slow=lambda x: time.sleep(60)), seconds=5.0)

    assert found["slow"]["slow"] == "not ready in time"
    assert "the row" not in found["slow"]


def test_the_rest_is_timed_after_a_process_is_lost_while_timing():
    rows = [row("kills", kills=lambda x: os._exit(3)), row("fine")]
    run = kernels.Run(rows, TINY, "cpu")
    ready = {name: {"the row": ""} for name in ("kills", "fine")}

    measured = list(kernels.time_rows(run, ready, time.monotonic() + 60.0))

    assert [entry.get("name") for entry in measured] == [None, "kills", "fine"]
    assert "ended" in measured[1]["lost"] and "solution" in measured[2]["times"]


def test_a_ratio_of_two_is_twice_as_fast_as_the_best_peer_and_our_own_are_no_peers():
    times = {who: {"median": ms, "p20": ms, "p80": ms, "repeats": 20} for who, ms in {
        "solution": 1.0, "torch": 3.0, "liger": 2.0, "solution, 2 stages": 0.5,
        "starter": 8.0}.items()}
    measured = {"name": "row", "goal": 1.0, "rival": "", "bytes": 4_000_000, "flops": None,
                "times": times}

    judged = kernels.judged(measured, {"copy_gb_s": 8.0, "matmul_tflops": 1.0})

    assert judged["best_peer"] == "liger"
    assert judged["who"]["solution"]["ratio"] == 2.0
    assert judged["who"]["solution"]["of_starter"] == 8.0
    assert judged["who"]["solution"]["gb_s"] == 4.0
    assert judged["who"]["solution"]["of_copy"] == 0.5


def test_a_row_may_say_which_values_count_and_how_far_off_they_are():
    def errors(inputs: tuple[torch.Tensor, ...], values: torch.Tensor,
               exact: torch.Tensor) -> dict[str, float]:
        return {"worst": (values - exact).abs().max().item()}

    pairs = Row("pairs", lambda scale, device: (torch.arange(4.0),), lambda x: 2 * x.double(),
                lambda: {"solution": lambda x: (x, 2.0), "off": lambda x: (x, 2.5)},
                tolerance=0.3, values=lambda pair: pair[0] * pair[1], errors=errors)
    run = kernels.Run((pairs,), TINY, "cpu")

    found = kernels.prepare(run, 1, time.monotonic() + 60.0)

    assert found["pairs"] == {"the row": "", "solution": "", "off": ""}
    assert run.errors == {"pairs": {"solution": {"worst": 0.0}, "off": {"worst": 1.5}}}


@pytest.mark.parametrize(("bits", "least", "most"), [(24, -40.0, -24.0), (11, -19.0, -11.0)])
def test_the_errors_of_a_product_tell_how_many_bits_its_sums_kept(bits, least, most):
    inputs = fp8_inputs(8192, 0.5)(TINY, "cpu")
    exact = fp8_exact(*inputs)
    rounded = torch.ldexp(torch.ldexp(*torch.frexp(exact)[:1], torch.tensor(bits)).floor(),
                          torch.frexp(exact)[1] - bits)

    errors = fp8_errors(inputs, rounded.float(), exact)

    assert least < errors["log2 of the arithmetic"] < most
    assert 2.0 ** -(bits + 3) < errors["lean"] < 2.0 ** -(bits - 1)


def test_solutions_of_mastery_run_as_the_kernels_are(tmp_path):
    """A row that calls a solution's kernel as it was before is not timed."""
    out = tmp_path / "kernels.json"
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.kernels", "--simulate", "--jobs", "2",
         "--out", out, "--seconds", "300", "--rows", "fused", "linear, bias", "attention", "adam",
         "layer norm backward"],
        cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, timeout=400)

    made = json.loads(out.read_text())

    assert len(made["rows"]) >= 15
    assert [(row, who, why) for row, whose in made["not_timed"].items()
            for who, why in whose.items() if who.startswith(("solution", "the row"))] == []


def test_results_have_a_row_on_a_line():
    rows = {"rows": [{"name": "x" * 60, "ms": 1.5, "ok": None}, {"name": "y" * 60, "ms": 2.5}],
            "date": "today"}

    lines = json_text(rows).splitlines()

    assert json.loads("".join(lines)) == rows
    assert len(lines) == 7 and lines[2].startswith('  {"name": "xxx')


def test_rows_have_names_of_their_own():
    names = [made.name for made in kernels.every_row()]

    assert len(names) == len(set(names))


@pytest.mark.gpu
def test_on_a_gpu_a_row_is_timed_in_turns():
    if not torch.cuda.is_available():
        pytest.skip("no GPU was found")
    from grader.engine.gpu.clock import Cuda
    from tests.benchmarks.turns import together

    x = torch.ones(1 << 20, device="cuda")
    times = together({"one": lambda: x + x, "two": lambda: x * 2}, Cuda(), 1.0)

    assert all(0 < taken["p20"] <= taken["median"] <= taken["p80"] for taken in times.values())
