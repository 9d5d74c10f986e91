"""The chaos list in its quick form; `python -m tests.fidelity.chaos` runs all, with 300 kills.

The invariants of every entry are in ``tests/fidelity/chaos/bench.py``. That they can fail is tried
here too: on a judge that forgets, one that leaves things behind, one that is late.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fidelity.chaos import bench as benches
from tests.fidelity.chaos import hooks, module, surroundings
from tests.fidelity.chaos.bench import SHIPPED, Bench, Ended, orphans
from tests.fidelity.chaos.entries import Entry, entries

pytestmark = pytest.mark.course

KILLS = 2
QUICK = [entry for entry in entries(KILLS) if entry.quick]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("chaos"), quick=True, seed=2) as made:
        yield made


@pytest.fixture
def clean(bench: Bench) -> Iterator[Bench]:
    """The bench, without what an entry before left behind."""
    bench.clear()
    yield bench
    bench.clear()


@pytest.mark.parametrize("entry", QUICK, ids=lambda entry: entry.name)
def test_chaos_ends_in_time_with_a_verdict_or_a_sentence_and_leaves_nothing(
    clean: Bench, entry: Entry
) -> None:
    if entry.mounts and not surroundings.can_mount():
        pytest.skip("a disk of its own takes root")

    assert entry.run(clean) == []


# ---------------------------------------------------------------------------------------------
# The invariants find what they look for


def test_a_lost_record_is_noticed(clean, monkeypatch):
    monkeypatch.setattr(clean, "acknowledged", clean.recorded() + 1)

    assert "acknowledged" in " ".join(clean.store())


def test_a_record_that_was_there_before_is_missed(clean, monkeypatch):
    monkeypatch.setattr(clean, "seen", {"a hash that no record has"})

    assert "1 earlier records are gone" in clean.store()


def test_a_certificate_that_does_not_load_is_noticed(clean):
    path = clean.mark / "certificate.json"
    kept = path.read_bytes()
    path.write_bytes(kept[:-9])
    try:
        assert "does not load" in " ".join(clean.store())
    finally:
        path.write_bytes(kept)


def test_a_file_that_is_left_is_noticed(clean, monkeypatch):
    monkeypatch.setattr(benches, "SETTLE_S", 0.1)
    (clean.temporary / "forgotten").mkdir()

    assert clean.leftovers() == ["forgotten is left"]


def test_a_process_that_is_left_is_noticed_and_ended(monkeypatch):
    monkeypatch.setattr(benches, "SETTLE_S", 0.1)
    script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)"
    with orphans() as left:
        subprocess.run([sys.executable, "-c", script], check=True)

    assert len(left) == 1
    assert "is left" in left[0]


@pytest.mark.parametrize(("ended", "says"), [
    (Ended(0, "{}", "", 0.1), "expected one of [1]"),
    (Ended(1, '{"verdict": "FAILED", "results": [{"findings": [{"code": "N01"}]}]}', "", 0.1),
     "expected one of ['R02']"),
    (Ended(1, "{}", "Traceback (most recent call last)", 0.1), "a traceback"),
    (Ended(1, "{}", "", 60.0), "allowed"),
    (Ended(1, "{}", "", 0.1, peak=2 << 30), "MiB more"),
], ids=["a wrong exit code", "a wrong finding", "a traceback", "late", "memory"])
def test_a_wrong_end_is_noticed(clean, ended, says):
    assert says in " ".join(clean.expected(ended, {1}, {"R02"}, cold=False))


def test_silence_is_noticed(clean):
    assert "without a sentence" in clean.expected(Ended(3, "", "", 0.1), {3}, cold=False)[0]


def test_a_kernel_spoiled_in_any_place_differs_and_still_compiles():
    for place in ("at import", "in the call", "in the kernel"):
        spoiled = module.spoiled(place, "a = 1\nb = 2")
        compile(spoiled, "kernel.py", "exec")

        assert spoiled != module.HEALTHY


def test_the_shipped_limits_are_those_of_the_grader():
    import importlib

    for place, seconds in SHIPPED.items():
        name, _, constant = place.rpartition(".")

        assert getattr(importlib.import_module(name), constant) == seconds


def test_every_write_of_the_record_can_fail(tmp_path):
    for number in range(1, 4):
        faulty = hooks.FaultyOs(number, hooks.NO_SPACE, once=True)
        failed = 0
        for _ in range(3):
            try:
                os.close(faulty.open(tmp_path / f"new{faulty.reached}",
                                     os.O_WRONLY | os.O_CREAT, 0o600))
            except OSError:
                failed += 1

        assert (faulty.reached, failed) == (3, 1)
