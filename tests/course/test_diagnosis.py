"""Diagnoses of planted mistakes: most name the place, hardly any falls back on a general one."""

from __future__ import annotations

import pytest

from tests.fidelity.diagnosis import measure

pytestmark = pytest.mark.course

# One mistake of every second module; `python -m tests.fidelity.diagnosis` measures all.
EVERY = 2
MOST_CATCH_ALL, LEAST_PLACED = 0.05, 0.80


def test_a_planted_mistake_is_named_with_its_place(sandbox, tmp_path):
    sample = [*measure.modules()][::EVERY]

    diagnoses = [diagnosis for material in sample
                 for diagnosis in measure.mistakes(material, 1, sandbox, tmp_path)]

    assert len(diagnoses) == len(sample)
    count = len(diagnoses)
    catch_all = [one for one in diagnoses if one.catch_all]
    astray = [(one.module, one.name, one.where) for one in diagnoses if not one.placed]
    assert len(catch_all) < MOST_CATCH_ALL * count, catch_all
    assert count - len(astray) >= LEAST_PLACED * count, astray
