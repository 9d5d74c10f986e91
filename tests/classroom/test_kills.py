"""SIGKILL of a grading loses nothing, and nothing is graded twice."""

import subprocess

import pytest

from tests.fidelity import class_kills

pytestmark = pytest.mark.course


def test_kills_at_random_moments_lose_nothing(tmp_path):
    kills, wrong = class_kills.run(6, 7, tmp_path)

    assert (sum(kills.values()), wrong) == (6, [])


def test_two_graders_share_one_class(tmp_path):
    class_kills.write(tmp_path / "class", count=24)

    processes = [class_kills.grade(tmp_path / "class") for _ in range(2)]
    errors = [process.communicate()[1] for process in processes]
    again = subprocess.run(class_kills.COMMAND, cwd=tmp_path / "class", capture_output=True,
                           text=True)

    assert [process.returncode for process in processes] == [0, 0], errors
    assert len(class_kills.results(tmp_path / "class")) == 24
    assert list(class_kills.faults(tmp_path / "class", {})) == []
    assert '"graded": 0' in again.stdout


def test_the_rehearsal_notices_lost_rewritten_and_damaged_results(tmp_path):
    class_kills.write(tmp_path / "class", count=2)
    class_kills.grade(tmp_path / "class").communicate()
    before = class_kills.results(tmp_path / "class")
    lost, damaged = (tmp_path / "class/.tritonlab-class/results" / name for name in before)

    lost.unlink()
    damaged.write_bytes(b"x")

    wrong = list(class_kills.faults(tmp_path / "class", before))
    assert len([text for text in wrong if "lost" in text or "twice" in text or "damaged" in text]
               ) == 3
