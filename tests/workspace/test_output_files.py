"""Files that the user asked for are written whole or not at all, and over nothing else."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from tritonlab.errors import TritonlabError
from tritonlab.progress import safe_files
from tritonlab.workspace import output_files
from tritonlab.workspace.output_files import PAGE, PICTURE


def test_a_page_takes_the_place_of_an_older_page(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")

    output_files.check(path, PAGE)
    output_files.write(b"new", path, PAGE)

    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_a_page_can_be_read_by_others_as_any_file_that_the_user_makes(tmp_path):
    before = os.umask(0o022)
    try:
        output_files.write(b"new", tmp_path / "page.html", PAGE)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o644


def test_what_was_there_stays_where_the_new_one_cannot_be_written_whole(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safe_files.os, "fsync", full)
    with pytest.raises(TritonlabError, match="no space left on device"):
        output_files.write(b"new", path, PAGE)

    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_stays_one_and_its_file_is_renewed(tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")

    output_files.write(b"new", tmp_path / "link.html", PAGE)

    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "new"


def test_links_in_a_circle_are_one_sentence(tmp_path):
    (tmp_path / "a.html").symlink_to("b.html")
    (tmp_path / "b.html").symlink_to("a.html")

    with pytest.raises(TritonlabError, match="Name another file with `--html FILE`"):
        output_files.write(b"new", tmp_path / "a.html", PAGE)


def test_a_page_that_the_disk_does_not_take_is_a_result_that_was_not_saved(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(TritonlabError) as failure:
            output_files.write(b"a page of more than ten bytes", tmp_path / "page.html", PAGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert failure.value.exit_code == 3
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("kind", [PAGE, PICTURE], ids=["page", "picture"])
@pytest.mark.parametrize(("number", "code"), [
    (errno.ENOSPC, 3), (errno.EDQUOT, 3), (errno.EROFS, 3), (errno.EACCES, 2), (errno.ENOTDIR, 2)])
def test_a_full_or_read_only_disk_is_told_from_a_path_that_cannot_be_used(
        tmp_path, monkeypatch, kind, number, code):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(output_files.safe_files, "replace", refuse)

    with pytest.raises(TritonlabError) as failure:
        output_files.write(b"new", tmp_path / f"new{kind.endings[0]}", kind)

    assert failure.value.exit_code == code


@pytest.mark.parametrize(("name", "kind", "said"), [
    ("folder.html", PAGE, "is a folder, so no page is written there. Name a file in it, such as "),
    ("notes.txt", PAGE, "already exists and is not a page, so it is left alone."),
    ("page.html", PICTURE, "already exists and is not a picture, so it is left alone."),
    ("nowhere/page.html", PAGE, "there is no such folder. Name another file with `--html FILE`."),
])
def test_nothing_else_is_overwritten(tmp_path, name, kind, said):
    (tmp_path / "folder.html").mkdir()
    for file in ("notes.txt", "page.html"):
        (tmp_path / file).write_text("mine")

    with pytest.raises(TritonlabError) as refused:
        output_files.check(tmp_path / name, kind)

    assert said in str(refused.value)
    assert Path(tmp_path / "notes.txt").read_text() == "mine"
