"""The engine against Triton's language, construct by construct."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from grader.engine.compiler.compile import address
from tests.fidelity.constructs import calls, compiles, matrix, running
from tests.fidelity.constructs.construct import (
    Check,
    Construct,
    Theme,
    difference,
    equal,
    near,
    rounded,
)
from tests.fidelity.constructs.every import CONSTRUCTS
from tests.fidelity.constructs.running import Row, Settings
from tests.fidelity.constructs.values import given, whole

pytestmark = pytest.mark.course

# As the engine runs by itself, and the other way round: whatever a GPU leaves open must not matter.
_SETTINGS = (Settings(), Settings(chunk=1, order="reverse", poison=1))
_rows: dict[str, tuple[Row, ...]] = {}  # what each test found, for the summary at the end


def _tried(construct: Construct) -> tuple[Row, ...]:
    if construct.name not in _rows:
        _rows[construct.name] = tuple(
            running.run(construct, settings=settings) for settings in _SETTINGS)
    return _rows[construct.name]


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: f"{c.theme}: {c.name}")
def test_the_engine_does_with_a_construct_what_its_table_says(construct):
    for row, settings in zip(_tried(construct), _SETTINGS, strict=True):
        assert row.verdict in (running.BEHAVES, running.REFUSED, running.DIFFERS), (
            f"{row.verdict}, with {settings}: {row.detail}")


def test_most_constructs_behave_like_a_gpu_and_none_is_silently_wrong():
    made = matrix.summary([_tried(construct)[0] for construct in CONSTRUCTS])

    assert made.run >= 180
    assert made.counts[running.WRONG] == 0
    assert made.share >= matrix.LEAST_SHARE


def test_every_construct_has_a_name_of_its_own():
    names = [construct.name for construct in CONSTRUCTS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", [
    "masked load and store over a 1-D grid", "max and min of every type", "** of a tensor",
    "break", "the grid as an int", "flip of a matrix",
])
def test_the_table_says_what_the_compiler_says(name: str, compiler: None):
    construct = next(c for c in CONSTRUCTS if c.name == name)

    accepted, said = compiles.compiles(construct)

    assert accepted is not construct.rejected, said


@pytest.mark.parametrize("call", calls.LOOPS)
def test_the_compiled_loop_runs_as_often_as_the_table_says(call: str):
    kernel, out = calls.loop_kernel(call), address("int32", 0)

    turns = compiles.turns(kernel, out, calls.VALUES, calls.CONSTANTS)

    assert turns == len(calls.LOOPS[call])


@pytest.fixture(scope="module")
def compiler() -> Iterator[None]:
    with compiles.warm_compiler():
        yield


# ---------------------------------------------------------------------------------------------
# That the matrix itself can tell right from wrong


@pytest.mark.parametrize(("check", "wrong"), [
    (equal(given([1.0, float("nan")]), given([1.0, float("nan")])), False),
    (equal(given([1.0]), given([1.0000001])), True),
    (equal(given([1.0, 2.0]), given([1.0])), True),
    (equal(given([0.1]), 0.1 * given([1.0]).double()), False),
    (equal(whole([2**31]), whole([-(2**31)])), False),
    (equal(whole([255]), [254]), True),
    (near(given([1.0]), [1 + 2e-7], ulps=2), False),
    (near(given([1.0]), [1 + 2e-6], ulps=2), True),
    (near(given([float("inf")]), [1e300], ulps=2), True),
], ids=str)
def test_a_wrong_value_is_told_from_a_right_one(check: Check, wrong: bool):
    assert bool(difference(check)) is wrong


def test_rounding_to_a_narrow_type_happens_once():
    halves = np.arange(2048, 4096) / 1024  # between neighbours of fp16, and a hair beside that
    values = np.concatenate([halves + 2.0**-11, halves + 2.0**-11 + 2.0**-40,
                             halves + 2.0**-11 - 2.0**-40, -halves - 2.0**-11 - 2.0**-40])

    once = rounded(torch.from_numpy(values), torch.float16)

    assert np.array_equal(once.numpy(), values.astype(np.float16))


def _construct(body, **options) -> Construct:
    theme = Theme("of this test")
    theme("one", **options)(body)
    return theme.constructs[0]


def _fails(device):
    raise TypeError("no GPU takes this")


@pytest.mark.parametrize(("body", "options", "verdict"), [
    (lambda device: equal(1, 1), {}, running.BEHAVES),
    (lambda device: equal(1, 2), {}, running.WRONG),
    (_fails, {}, running.FAILED),
    (_fails, {"rejects": ("3.6", "3.7", "3.8", "3.9")}, running.REFUSED),
    (lambda device: None, {"rejects": ("3.6", "3.7", "3.8", "3.9")}, running.WRONG),
    (lambda device: equal(1, 2), {"differs": "for a reason"}, running.DIFFERS),
    (lambda device: equal(1, 1), {"differs": "for no reason"}, running.STALE),
    (lambda device: equal(1, 1), {"finds": ("M01",)}, running.FAILED),
    (lambda device: equal(1, 1), {"fails": "R01"}, running.WRONG),
], ids=["right", "wrong", "an error", "refused", "not refused", "known", "no longer", "no finding",
        "no failure"])
def test_a_construct_gets_the_verdict_that_it_deserves(body, options, verdict):
    assert running.run(_construct(body, **options)).verdict == verdict
