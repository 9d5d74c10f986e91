"""The store: content-addressed submissions, results that show damage, claims."""

import multiprocessing
import os
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tests.classroom import support
from tritonlab.classroom.store import Store
from tritonlab.errors import NotSaved, TritonlabError


@pytest.fixture
def store(tmp_path):
    return support.write(tmp_path)[1]


def test_equal_submissions_are_stored_once(store):
    files = {"kernel.py": b"a", "ops/swish.py": b"\x00\xff"}

    first = store.add(files)
    second = store.add(dict(reversed(files.items())))

    assert first == second
    assert store.files(first) == files


@pytest.mark.parametrize("name", ["kernel.py", "a/b.py", "é.py", f"{'long' * 40}.py", "x" * 100])
@pytest.mark.parametrize("size", [0, 1, 512, 513, 5_000])
def test_files_come_back_as_they_were(store, name, size):
    files = {name: bytes(range(256)) * 20, "other.py": b"x" * size}

    assert store.files(store.add(files)) == files


def test_a_damaged_submission_is_refused_and_can_be_added_again(store):
    digest = store.add({"kernel.py": b"a"})
    [path] = store.folder.glob("blobs/*/*.tar")
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(TritonlabError, match="missing or damaged"):
        store.files(digest)
    store.add({"kernel.py": b"a"})
    assert store.files(digest) == {"kernel.py": b"a"}


@pytest.mark.parametrize("damage", [
    lambda content: content[:-5], lambda content: b"", lambda content: b"{}",
    lambda content: content[:40] + b"\x00" + content[41:]])
def test_a_damaged_result_counts_as_absent(store, damage):
    store.save_result("k", {"key": "k", "report": {"verdict": "PASSED"}})
    path = store.result_path("k")
    assert store.result("k")["report"] == {"verdict": "PASSED"}

    path.write_bytes(damage(path.read_bytes()))

    assert store.result("k") is None


def test_a_result_under_another_name_counts_as_absent(store):
    store.save_result("k", {"key": "k", "report": {}})
    store.result_path("k").rename(store.result_path("other"))

    assert store.result("other") is None


def _hold(folder: Path, held: Event, release: Event) -> None:
    with Store(folder).claimed("k") as own:
        assert own
        held.set()
        release.wait()


def test_a_claim_ends_with_its_process(store):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(store.folder.parent, held, release))
    process.start()
    held.wait()
    with store.claimed("k") as while_held:
        pass
    process.kill()
    process.join()

    with store.claimed("k") as after:
        pass

    assert (while_held, after) == (False, True)


def test_a_claim_is_of_one_grade(store):
    with store.claimed("k") as first, store.claimed("other") as second, \
            store.claimed("k") as again:
        pass

    assert (first, second, again) == (True, True, False)


def test_a_read_only_store_gives_one_sentence(store, monkeypatch):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(NotSaved, match="The result was not saved: the file system is read-only"):
        store.save_result("k", {})


def test_seeds_are_secret_and_of_one_assignment_and_module(store, tmp_path):
    other = support.write(tmp_path / "other")[1]

    seeds = {store.seed("hw1", "a"), store.seed("hw1", "b"), store.seed("hw2", "a"),
             other.seed("hw1", "a")}

    assert len(seeds) == 4
    assert store.seed("hw1", "a") in seeds
