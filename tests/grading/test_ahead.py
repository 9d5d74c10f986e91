"""The sandbox that is started before the command line is read."""

from __future__ import annotations

import subprocess
import sys

from tritonlab.grading import ahead


def test_a_sandbox_is_taken_once():
    ahead.start()

    first, second = ahead.take(), ahead.take()

    assert second is None
    assert first is not None
    with first:
        assert first.isolation.describe()


def test_a_grade_that_does_not_begin_leaves_no_files_and_its_own_exit_code(tmp_path):
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    ended = subprocess.run([sys.executable, "-m", "tritonlab", "grade", "track1/nothing"],
                           cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert ended.returncode == 2
    assert "No module is called" in ended.stderr
    assert list(tmp_path.iterdir()) == []
