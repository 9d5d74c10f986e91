"""The cache on disk: whole entries or none, whatever happens to the files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from grader.processes.cache import Cache, folder, sources_sha256


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "code"


def test_an_entry_is_read_as_it_was_written(home):
    Cache("code").write("key", {"a": [1, None, "é"]})

    assert Cache("code").read("key") == {"a": [1, None, "é"]}
    assert Cache("code").read("other") is None


@pytest.mark.parametrize("damage", [
    lambda text: text[:-1], lambda text: "", lambda text: text.replace("1", "2"),
    lambda text: text.partition("\n")[2]], ids=["cut", "empty", "changed", "without its digest"])
def test_a_damaged_entry_is_no_entry(home, damage):
    cache = Cache("code")
    cache.write("key", {"a": 1})

    (home / "key").write_text(damage((home / "key").read_text()))

    assert cache.read("key") is None
    cache.write("key", {"a": 3})
    assert cache.read("key") == {"a": 3}


def test_an_entry_under_the_key_of_another_is_no_entry(home):
    cache = Cache("code")
    cache.write("key", {"a": 1})

    (home / "key").rename(home / "other")

    assert cache.read("other") is None


def test_a_folder_that_others_can_write_to_is_not_used(home):
    cache = Cache("code")
    cache.write("key", {"a": 1})

    home.chmod(0o777)
    cache.write("new", {"a": 1})

    assert (cache.read("key"), (home / "new").exists()) == (None, False)


def test_a_folder_that_cannot_be_made_costs_only_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "file"))
    cache = Cache("code")

    cache.write("key", {"a": 1})

    assert cache.read("key") is None


def test_a_full_disk_leaves_no_half_entry(small_disk, monkeypatch):
    with small_disk("64k") as disk:
        monkeypatch.setenv("TRITONLAB_CACHE", str(disk))
        cache = Cache("code")
        cache.write("small", {"a": 1})

        cache.write("large", {"a": "x" * 200_000})

        assert cache.read("large") is None
        assert cache.read("small") == {"a": 1}
        assert [path.name for path in (disk / "code").iterdir()] == ["small"]


def test_several_writers_leave_one_whole_entry(home):
    def write(number: int) -> None:
        for _ in range(50):
            Cache("code").write("key", {"writer": number, "text": str(number) * 1000})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        entry = Cache("code").read("key")
        assert entry is None or entry["text"] == str(entry["writer"]) * 1000
    for thread in threads:
        thread.join()

    assert [path.name for path in home.iterdir()] == ["key"]


def test_the_entries_used_longest_ago_go_first(home):
    cache = Cache("code", most_bytes=8_000)
    for number in range(4):
        cache.write(f"{number}", "x" * 1_500)
        os.utime(home / f"{number}", (number, number))

    for number in range(4, 10):
        assert cache.read("0")  # now the newest
        cache.write(f"{number}", "x" * 1_500)

    kept = {path.name for path in home.iterdir()}
    assert "0" in kept and "1" not in kept
    assert sum(path.stat().st_size for path in home.iterdir()) < 9_000 + 1_700


def test_it_can_be_switched_off(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TRITONLAB_CACHE", "off")
    Cache("code").write("key", {"a": 1})

    assert Cache("code").read("key") is None
    assert list(tmp_path.iterdir()) == []


def test_it_lies_in_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TRITONLAB_CACHE", raising=False)

    assert folder() == tmp_path / "tritonlab"


def test_a_home_that_does_not_exist_is_not_created(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("TRITONLAB_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))

    Cache("code").write("key", {"a": 1})

    assert list(tmp_path.iterdir()) == []


def test_the_digest_of_the_sources_is_of_the_packages_that_are_named():
    assert sources_sha256(("executor",)) != sources_sha256(("executor", "recording"))
    assert len(sources_sha256()) == 64
