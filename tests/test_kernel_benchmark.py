"""Solutions against peers: who is timed, who is not, and what the times mean."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.benchmarks import kernels
from tests.benchmarks.rows import TINY, Row, all_rows
from tests.benchmarks.rows_optimization import optimization_rows


def row(name: str, **who: Callable[..., Any]) -> Row:
    return Row(name, lambda scale, device: (torch.arange(1.0, 9.0),), lambda x: 2 * x.double(),
               lambda: {"solution": lambda x: 2 * x, "torch": lambda x: x + x, **who},
               least_bytes=lambda x: 2 * x.nbytes, goal=1.0)


def prepared(*rows: Row, seconds: float = 60.0) -> dict[str, dict[str, str]]:
    run = kernels.Run(rows, TINY, "cpu", True)
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
    run = kernels.Run(rows, TINY, "cpu", True)
    ready = {name: {"the row": ""} for name in ("kills", "fine")}

    measured = list(kernels.time_rows(run, ready, time.monotonic() + 60.0))

    assert [entry.get("name") for entry in measured] == [None, "kills", "fine"]
    assert "ended" in measured[1]["lost"] and "solution" in measured[2]["times"]


def test_a_ratio_of_two_is_twice_as_fast_as_the_best_peer_and_our_own_are_no_peers():
    times = {who: {"median": ms, "p20": ms, "p80": ms, "repeats": 20} for who, ms in {
        "solution": 1.0, "torch": 3.0, "liger": 2.0, "try w8": 0.5, "solution, 2 stages": 0.5,
        "starter": 8.0}.items()}
    measured = {"name": "row", "goal": 1.0, "rival": "", "bytes": 4_000_000, "flops": None,
                "times": times}

    judged = kernels.judged(measured, {"copy_gb_s": 8.0, "matmul_tflops": 1.0})

    assert judged["best_peer"] == "liger"
    assert judged["who"]["solution"]["ratio"] == 2.0
    assert judged["who"]["solution"]["of_starter"] == 8.0
    assert judged["who"]["solution"]["gb_s"] == 4.0
    assert judged["who"]["solution"]["of_copy"] == 0.5


def test_rows_have_names_of_their_own():
    names = [made.name for made in (*all_rows(), *optimization_rows())]

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
