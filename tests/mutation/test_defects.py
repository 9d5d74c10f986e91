"""Every defect of the table can be planted, so that the table does not rot."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutation import defects
from tests.mutation.__main__ import summary
from tests.mutation.defects import Defect

ROOT = Path(__file__).parents[2]
DEFECTS = defects.load()
ROOMS = ("judge", "executor", "worker", "engine/interpreter", "diagnosis")


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.id)
def test_a_defect_changes_its_file_and_leaves_python(defect):
    text = (ROOT / defect.file).read_text()

    planted = defect.planted(text)

    assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(text))
    assert defect.why
    assert all((ROOT / path.partition("::")[0]).is_file() for path in defect.nearest)


@pytest.mark.parametrize("text", ["x = 1\n", "a = 0\nb = a = 0\n"], ids=["gone", "twice"])
def test_a_defect_whose_text_is_not_there_once_is_refused(text):
    defect = Defect("one", "grader/text.py", "a = 0", "a = 1", "")

    with pytest.raises(ValueError, match=r"one: the old text stands [02] times"):
        defect.planted(text)


@pytest.mark.parametrize(("tiers", "noticed", "survivors"), [
    (["default", "course", "none", "default"], {"default": 0.5, "course": 0.75}, ["2"]),
    (["default", "not default"], {"default": 0.5}, ["1"])], ids=["both tiers", "one tier"])
def test_a_share_is_of_all_defects_and_survivors_are_named(tiers, noticed, survivors):
    rows = [{"id": str(number), "tier": tier} for number, tier in enumerate(tiers)]

    assert summary(rows) == {
        "defects": len(tiers), "noticed": noticed, "survivors": survivors}


def test_the_defects_are_many_and_spread_over_the_rooms():
    rooms = Counter(defect.room for defect in DEFECTS)

    assert len({defect.id for defect in DEFECTS}) == len(DEFECTS) >= 60
    assert min(rooms[room] for room in ROOMS) >= 8
