"""The grader reports for known files what it reported before."""

from __future__ import annotations

import pytest

from tests.golden import verdicts

pytestmark = pytest.mark.course

QUICK = ("vector-add", "tiling", "basic-debugging", "custom-kernels")  # one module of each track


@pytest.mark.parametrize("slug", QUICK)
def test_verdicts_of_known_files_do_not_change(slug, sandbox):
    (material,) = verdicts.modules([slug])
    before = verdicts.kept(material).read_text()

    assert verdicts.of(material, sandbox, verdicts.mutants_of(before)) == before
