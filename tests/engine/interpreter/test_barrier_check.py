"""A program that loads what other threads of its own may not have stored yet is told so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import triton
from packaging.version import Version

from grader.engine.compiler.compile import address, build
from grader.engine.compiler.targets import find
from grader.engine.interpreter.barrier_check import Recent
from grader.engine.interpreter.eager import interpreted
from grader.report import Finding
from tests.fidelity.memory.cases import Right, Wrong, deadline, found, marked, speaks_of
from tests.fidelity.memory.threads import (
    AT_ONCE,
    ATOMICS,
    EXCHANGES,
    FREE,
    SEEN,
    after_atomic_kernel,
    after_kernel,
    keep,
)

either_order = pytest.mark.parametrize("order", ["forward", "reverse"])
together_or_apart = pytest.mark.parametrize("chunk", [None, 1, 3])


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with deadline(60.0):
        yield


def found_in(case: Wrong, order: Any, chunk: int | None) -> list[Finding]:
    with interpreted(order=order, chunk=chunk) as trace:
        case.run()
    return trace.findings


@either_order
@together_or_apart
@pytest.mark.parametrize("case", AT_ONCE.values(), ids=AT_ONCE)
def test_a_load_of_what_other_threads_store_is_found(case: Wrong, order: Any,
                                                     chunk: int | None) -> None:
    findings = found_in(case, order, chunk)

    assert [speaks_of(finding, case) for finding in findings] == [[]], findings


@pytest.mark.parametrize("case", AT_ONCE.values(), ids=AT_ONCE)
def test_the_line_of_the_store_is_told_too(case: Wrong) -> None:
    stores = [*marked(case.kernel, "stored"), *marked(keep, "stored")]
    changes = marked(case.kernel, "changed")

    told = re.search(r"that it (stored|changed) on line (\d+) itself", found(case, None)[0].seen)

    assert told
    assert int(told[2]) in (changes if told[1] == "changed" else stores)


@pytest.mark.parametrize("case", AT_ONCE.values(), ids=AT_ONCE)
def test_every_word_is_the_same_however_programs_are_grouped(case: Wrong) -> None:
    one_by_one, *others = (
        {(f.line, f.seen) for f in found_in(case, order, chunk)}
        for order in ("forward", "reverse") for chunk in (1, 2, 3, None))

    assert others == [one_by_one] * 7


@either_order
@together_or_apart
@pytest.mark.parametrize("case", SEEN.values(), ids=SEEN)
def test_what_all_threads_see_is_left_alone(case: Right, order: Any, chunk: int | None) -> None:
    with interpreted(order=order, chunk=chunk) as trace:
        out, expected = case.run()

    assert trace.findings == []
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", FREE)
def test_who_loads_nothing_that_was_just_stored_pays_for_no_look(name: str) -> None:
    with mock.patch.object(Recent, "lines") as look, interpreted() as trace:
        SEEN[name].run()

    assert trace.findings == []
    assert look.call_count == 0


# ---------------------------------------------------------------------------------------------
# What the compiler makes of the same kernels


def waits_before_it_loads(kernel: Any, what: str, **more: Any) -> bool:
    """Whether a barrier lies between the first store to global memory and the last load."""
    tensors = {name: address("float32", 0) for name in ("x_ptr", "s_ptr", "y_ptr")}
    made = build(kernel, {**tensors, **more, "BLOCK_SIZE": 1024, "WHAT": what}, {}, find("h100"))
    text = made.asm["ptx"]
    start, end = text.index("st.global"), text.rindex("ld.global")
    assert start < end
    return re.search(r"\bbar(rier)?\.sync", text[start:end]) is not None


def test_without_a_barrier_the_compiler_lets_no_thread_wait() -> None:
    assert not waits_before_it_loads(after_kernel, "nothing")


@pytest.mark.parametrize("what", EXCHANGES)
def test_where_a_barrier_is_counted_the_compiler_places_one(what: str) -> None:
    assert waits_before_it_loads(after_kernel, what)


@pytest.mark.parametrize("what", ATOMICS)
def test_at_a_scalar_atomic_the_compiler_places_a_barrier_from_triton_3_9_on(what: str) -> None:
    """Before, it does so only where the result is used, which the engine cannot see: a miss."""
    waits = waits_before_it_loads(after_atomic_kernel, what, count_ptr=address("int32", 0))

    assert waits == (Version(triton.__version__) >= Version("3.9"))
