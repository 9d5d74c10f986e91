"""Predictions: numbers that learners work out before they run anything."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from grader.suite.cases import Case, call

ROUGHLY = 0.15  # how far off a prediction may be, as a share of the right number


def predictions(answers: Sequence[tuple[str, float, str]], counts: Collection[str] = ()
                ) -> list[Case]:
    """A case for each entry of ``PREDICT``; they are shown and never decide.

    They call ``prediction`` of ``grader/worker/suite_drivers.py`` with the name of an entry, and it
    answers the number that was written down, another value as text, or None.

    Args:
        answers: name, right number, and how it is found, as a sentence.
        counts: the names of those that nothing blurs, which have to be right exactly.
    """
    return [call(f"your prediction of {name}", "prediction", name, advisory=True,
                 check=is_given(right, why, 0.0 if name in counts else ROUGHLY))
            for name, right, why in answers]


def is_given(right: float, why: str, within: float) -> Callable[..., None]:
    """A check of a prediction, within a share of it; ``why`` leads to the right number."""
    def check(answer: Any, name: str) -> None:
        assert answer is not None, (
            f"PREDICT[{name!r}] has no number yet. Write one down before you measure.")
        assert not isinstance(answer, str), f"PREDICT[{name!r}] is {answer}, which is not a number."
        share = " It must be a share, from 0 to 1." if 0 < right < 1 < answer else ""
        assert math.isclose(answer, right, rel_tol=within), (
            f"PREDICT[{name!r}] is {answer:,.10g}.{share} {why}")

    return check
