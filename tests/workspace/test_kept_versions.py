"""The two versions of an exercise that `inspect --against last` may compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonlab.course import course
from tritonlab.workspace import kept_versions

ONE, TWO, THREE = ({"kernel.py": f"x = {number}\n".encode()} for number in (1, 2, 3))


@pytest.fixture
def module():
    return course.load(course.shipped_roots()).find("track1/softmax")


def test_the_version_before_is_the_newest_with_another_content(tmp_path: Path, module):
    kept_versions.keep(tmp_path, module, ONE)
    assert kept_versions.before(tmp_path, module, ONE) is None
    assert kept_versions.before(tmp_path, module, TWO) == ONE

    kept_versions.keep(tmp_path, module, TWO)
    kept_versions.keep(tmp_path, module, TWO)

    assert kept_versions.before(tmp_path, module, TWO) == ONE
    assert kept_versions.before(tmp_path, module, THREE) == TWO


def test_only_two_versions_are_kept_and_an_older_one_may_come_back(tmp_path: Path, module):
    for version in (ONE, TWO, THREE):
        kept_versions.keep(tmp_path, module, version)
    assert kept_versions.before(tmp_path, module, THREE) == TWO

    kept_versions.keep(tmp_path, module, TWO)

    assert kept_versions.before(tmp_path, module, TWO) == THREE


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'[{"kernel.py": 1}]'])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, module, damage: bytes):
    kept_versions.keep(tmp_path, module, ONE)
    file = tmp_path / "versions" / "track1" / "softmax.json"
    file.write_bytes(damage)

    assert kept_versions.before(tmp_path, module, TWO) is None


def test_what_cannot_be_kept_or_read_is_not_kept(tmp_path: Path, module):
    (tmp_path / "versions").write_text("in the way")

    kept_versions.keep(tmp_path, module, ONE)
    kept_versions.keep(tmp_path, module, {})

    assert kept_versions.before(tmp_path, module, TWO) is None
