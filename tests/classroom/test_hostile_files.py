"""Archives, names, links, notebooks and git folders that mean harm, or are merely broken."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tarfile
import time
import zipfile
import zlib
from pathlib import Path

import pytest

from tests.classroom.test_layouts import A, B, lay, read, zipped
from tests.support import class_layouts
from tritonlab.classroom.importers import file_tree
from tritonlab.classroom.importers.git_objects import Repository
from tritonlab.errors import TritonlabError, UnusableFile


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as content:
        for info, data in members:
            info.size = len(data)
            content.addfile(info, io.BytesIO(data))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize("name", ["/etc/passwd", "../kernel.py", "alice/../../kernel.py",
                                  "C:/kernel.py", "C:\\kernel.py"])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_whose_paths_lead_out_is_refused(tmp_path, name, kind):
    path = tmp_path / f"in.{kind}"
    if kind == "zip":
        zipped(path, {"alice/kernel.py": A, name: B})
    else:
        tar_of(path, (member("alice/kernel.py"), A), (member(name), B))

    with pytest.raises(TritonlabError, match="leads out of it"):
        read(path)


@pytest.mark.parametrize(("kind", "reason"), [
    (tarfile.SYMTYPE, "is a link"), (tarfile.LNKTYPE, "is a link"),
    (tarfile.CHRTYPE, "is not a regular file"), (tarfile.FIFOTYPE, "is not a regular file")])
def test_links_and_devices_in_a_tar_archive_are_left_out(tmp_path, kind, reason):
    path = tar_of(tmp_path / "in.tar.gz", (member("alice/kernel.py"), A),
                  (member("alice/ops.py", kind, "/etc/passwd"), b""))

    alice, = read(path)

    assert alice.files == {"kernel.py": A}
    assert alice.problems == (f"ops.py {reason} and was left out.",)


def test_links_and_encrypted_files_in_a_zip_archive_are_left_out(tmp_path):
    path = tmp_path / "in.zip"
    with zipfile.ZipFile(path, "w") as content:
        content.writestr("alice/kernel.py", A)
        link = zipfile.ZipInfo("alice/link.py")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        content.writestr(link, b"/etc/passwd")
        content.writestr("alice/secret.py", B)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"alice/secret.py") - 46
    data[entry + 8] |= 1
    path.write_bytes(data)

    alice, = read(path)

    assert alice.files == {"kernel.py": A}
    assert set(alice.problems) == {"link.py is a link and was left out.",
                                   "secret.py is encrypted and was left out."}


def test_links_devices_and_pipes_of_a_folder_are_not_opened(tmp_path):
    lay(tmp_path, {"in/alice/kernel.py": A, "secret.py": b"secret"})
    os.mkfifo(tmp_path / "in/alice/pipe.py")
    (tmp_path / "in/alice/link.py").symlink_to(tmp_path / "secret.py")
    (tmp_path / "in/bob").symlink_to(tmp_path / "in/alice")

    incoming = {one.student_text: one for one in read(tmp_path / "in")}

    assert incoming["alice"].files == {"kernel.py": A}
    assert set(incoming["alice"].problems) == {"link.py is a link and was left out.",
                                               "pipe.py is not a regular file and was left out."}
    assert incoming["bob"].problems == ("bob is a link and was left out.",)


def test_a_kernel_that_is_a_link_is_nothing_to_grade(tmp_path):
    lay(tmp_path, {"secret.py": b"secret", "in/alice/notes.txt": A})
    (tmp_path / "in/alice/kernel.py").symlink_to(tmp_path / "secret.py")

    alice, = read(tmp_path / "in", "folder")

    assert alice.files == {}
    assert alice.problems[0] == "kernel.py is a link and was left out."


def test_a_large_file_is_refused_and_the_others_are_read(tmp_path):
    large = b"#" * 1_000_001
    lay(tmp_path, {"alice/kernel.py": large, "bob/kernel.py": B, "bob/data.py": large,
                   "carol/kernel.py": large[1:]})

    alice, bob, carol = read(tmp_path)

    assert alice.files == {}
    assert alice.problems == ("kernel.py was left out. It has 1,000,001 bytes; at most 1,000,000 "
                              "are read.",)
    assert bob.files == {"kernel.py": B}
    assert len(carol.files["kernel.py"]) == 1_000_000


def test_a_zip_bomb_is_refused_before_it_is_decompressed(tmp_path):
    path = tmp_path / "in.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        with content.open("alice/kernel.py", "w", force_zip64=True) as file:
            for _ in range(200):
                file.write(bytes(1_000_000))
        content.writestr("bob/kernel.py", B)

    started = time.process_time()
    alice, bob = read(path)

    assert time.process_time() - started < 0.5
    assert "It has 200,000,000 bytes" in alice.problems[0]
    assert bob.files == {"kernel.py": B}


def test_a_zip_archive_that_understates_a_size_is_read_to_that_size(tmp_path):
    path = tmp_path / "in.zip"
    zipped(path, {"alice/kernel.py": bytes(5_000), "bob/kernel.py": B})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 24:entry + 28] = struct.pack("<I", 10)
    path.write_bytes(data)

    alice, bob = read(path)

    assert alice.files == {}
    assert "is damaged" in alice.problems[0]
    assert bob.files == {"kernel.py": B}


def test_a_tar_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(file_tree, "MOST_EXPANDED", 20_000_000)
    path = tmp_path / "in.tar.gz"
    info = member("alice/kernel.py")
    info.size = 500_000_000
    with gzip.open(path, "wb", 1) as file:
        file.write(info.tobuf())
        for _ in range(30):
            file.write(bytes(1_000_000))

    with pytest.raises(TritonlabError, match="decompresses to more than 20,000,000 bytes"):
        read(path)


def test_a_header_of_a_tar_archive_cannot_take_all_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(file_tree, "MOST_EXPANDED", 20_000_000)
    path = tmp_path / "in.tar.gz"
    info = member("x", tarfile.XHDTYPE)
    info.size = 8_000_000_000
    with gzip.open(path, "wb", 1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(30):
            file.write(bytes(1_000_000))

    with pytest.raises(TritonlabError, match="decompresses to more than"):
        read(path)


def test_files_of_a_tar_archive_that_fill_the_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(file_tree, "MOST_HELD", 3_000_000)
    path = tar_of(tmp_path / "in.tar.gz", *((member(f"s{number}/kernel.py"), bytes(900_000))
                                            for number in range(5)))

    with pytest.raises(TritonlabError, match="have more than 3,000,000 bytes"):
        read(path)


@pytest.mark.parametrize("kind", ["folder", "in.zip", "in.tar.gz"])
def test_too_many_entries_are_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(file_tree, "MOST_ENTRIES", 10)
    files = {f"alice/{number}.py": A for number in range(11)}
    path = tmp_path / kind
    if kind == "folder":
        lay(path, files)
    elif kind == "in.zip":
        zipped(path, files)
    else:
        tar_of(path, *((member(name), data) for name, data in files.items()))

    with pytest.raises(TritonlabError, match="has more than 10 entries"):
        read(path)


@pytest.mark.parametrize("name", ["in.zip", "in.tar.gz", "in.tar", "in.tgz"])
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x1f\x8b\x08\0", b"Rar!\x1a", bytes(9)])
def test_what_is_not_an_archive_is_an_error(tmp_path, name, data):
    lay(tmp_path, {name: data})

    with pytest.raises(TritonlabError, match=r"damaged, or not an archive|is not recognized"):
        read(tmp_path / name)


def test_an_entry_without_a_name_is_ignored(tmp_path):
    path = zipped(tmp_path / "in.zip", {"alice/kernel.py": A, "x": B})
    data = path.read_bytes()
    entry = data.rindex(b"PK\x01\x02")
    renamed = data[:entry + 28] + b"\0\0" + data[entry + 30:entry + 46] + data[entry + 47:]
    end = renamed.rindex(b"PK\x05\x06")
    size = struct.unpack_from("<I", renamed, end + 12)[0] - 1
    path.write_bytes(renamed[:end + 12] + struct.pack("<I", size) + renamed[end + 16:])

    assert [one.files for one in read(path)] == [{"kernel.py": A}]


def test_an_archive_of_a_student_that_is_refused_is_that_student_s_problem(tmp_path):
    evil = zipped(tmp_path / "evil.zip", {"../kernel.py": A}).read_bytes()
    nested = zipped(tmp_path / "nested.zip", {"kernel.zip": evil}).read_bytes()
    lay(tmp_path / "in", {"alice.zip": evil, "bob.zip": b"not a zip", "carol.zip": nested,
                          "dan.py": A, "eve.zip": bytes(8_000_001)})

    incoming = {one.student_text: one for one in read(tmp_path / "in")}

    assert {name for name, one in incoming.items() if one.files} == {"dan"}
    assert "leads out of it" in incoming["alice"].problems[0]
    assert "not an archive" in incoming["bob"].problems[0]
    assert incoming["carol"].problems == ("There is no Python file and no notebook in it.",)
    assert "at most 8,000,000 are read" in incoming["eve"].problems[0]


def test_names_of_any_bytes_are_read_and_shown_with_escapes(tmp_path):
    for name in (b"al\xffice; rm -rf ~\x1b[31m", b"$(touch pwned)"):
        lay(tmp_path / "in" / os.fsdecode(name), {"kernel.py": A, os.fsdecode(b"b\xfe\n.py"): B})

    incoming = read(tmp_path / "in")

    assert [one.student_text for one in incoming] == [
        "$(touch pwned)", r"al\xffice; rm -rf ~\x1b[31m"]
    for one in incoming:
        assert one.files == {"kernel.py": A}
        assert one.problems[0].startswith(r"b\xfe\n.py was left out.")
        assert one.name.isprintable()


def test_a_name_that_writes_backwards_is_shown_with_escapes(tmp_path):
    lay(tmp_path, {"alice\u202eyp.py": A})

    assert [one.student_text for one in read(tmp_path)] == [r"alice\u202eyp"]


def test_of_two_entries_with_one_name_the_last_one_counts(tmp_path):
    path = tmp_path / "in.zip"
    with zipfile.ZipFile(path, "w") as content, pytest.warns(UserWarning, match="Duplicate name"):
        content.writestr("alice/kernel.py", A)
        content.writestr("alice/kernel.py", B)

    assert [one.files for one in read(path)] == [{"kernel.py": B}]


def test_encodings_are_left_to_the_grader(tmp_path):
    sources = {"utf16": "x = 1".encode("utf-16"), "bom": b"\xef\xbb\xbfx = 1", "nul": b"x\0=1",
               "empty": b"", "latin": b"# \xe9"}
    lay(tmp_path, {f"{name}/kernel.py": data for name, data in sources.items()})

    assert {one.student_text: one.files["kernel.py"] for one in read(tmp_path)} == sources


def test_of_many_files_those_near_the_kernel_are_imported(tmp_path):
    lay(tmp_path, {"alice/kernel.py": A, "alice/ops.py": B} | {
        f"alice/env/lib/{number}.py": A for number in range(80)})

    alice, = read(tmp_path)

    assert len(alice.files) == 64
    assert {"kernel.py", "ops.py"} < set(alice.files)
    assert alice.problems == ("It has 82 files; 64 of them were imported.",)


def test_hidden_files_and_caches_are_not_imported(tmp_path):
    lay(tmp_path, {"alice/kernel.py": A, "alice/.env": B, "alice/.vscode/x.py": B,
                   "alice/__pycache__/y.py": B, "__MACOSX/alice/._kernel.py": B, ".DS_Store": B})

    assert [(one.student_text, one.files) for one in read(tmp_path)] == [
        ("alice", {"kernel.py": A})]


def notebook(*cells: object, **more: object) -> bytes:
    return json.dumps({"cells": cells, "nbformat": 4, **more}).encode()


def code(source: str | list[str], *tags: str) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}, "outputs": []}


@pytest.mark.parametrize(("cells", "expected"), [
    ([code("%load_ext tritonlab"), code(["%%kernel softmax\n", "x = 1\n", "%time x"])],
     [("softmax", "# %%kernel softmax\nx = 1\n# %time x\n")]),
    ([code("%%kernel softmax\nx = (8\n  % 3)")],
     [("softmax", "# %%kernel softmax\nx = (8\n  % 3)\n")]),
    ([code("%%kernel a\nx = 1"), code("%%kernel b\nx = 2")],
     [("a", "# %%kernel a\nx = 1\n"), ("b", "# %%kernel b\nx = 2\n")]),
    ([code("import triton\n!pip list", "kernel"), code("y = 1"), code("x = 1", "kernel")],
     [(None, "import triton\n# !pip list\n\nx = 1\n")]),
    ([code("x = 1", "kernel"), code("%%kernel\nx = 2")], [(None, "# %%kernel\nx = 2\n")]),
])
def test_the_exercises_in_a_notebook_are_read(tmp_path, cells, expected):
    lay(tmp_path / "flat", {"alice.ipynb": notebook(*cells)})
    lay(tmp_path / "canvas", {"alice_5_70_work.ipynb": notebook(*cells)})

    flat, canvas = read(tmp_path / "flat"), read(tmp_path / "canvas")

    for incoming in (flat, canvas):
        assert [(one.module, one.files["kernel.py"].decode()) for one in incoming] == expected
        assert {one.student_text for one in incoming} == {"alice"}


@pytest.mark.parametrize(("data", "problem"), [
    (notebook(code("x = 1")), "has no cell that starts with %%kernel"), (b"{}", "not a notebook"),
    (b"[" * 100_000, "not a notebook"), (notebook({"cell_type": "code", "source": 1}), "not a"),
    (b'{"cells": [{"cell_type": "code", "source": "%%kernel\\n\\ud800"}]}', "not a notebook"),
    (bytes(16_000_001), "at most 16,000,000 are read")],
    ids=["no cell", "empty", "deep", "number", "surrogate", "large"])
def test_a_notebook_that_cannot_be_read_is_reported(tmp_path, data, problem):
    lay(tmp_path, {"alice/work.ipynb": data, "bob/kernel.py": B})

    alice, bob = read(tmp_path)

    assert alice.files == {}
    assert problem in alice.problems[0]
    assert bob.files == {"kernel.py": B}


def test_of_two_cells_of_a_module_the_last_one_counts(tmp_path):
    lay(tmp_path, {"alice.ipynb": notebook(code("%%kernel a\nx = 1"), code("%%kernel a\nx = 2"))})

    alice, = read(tmp_path)

    assert alice.files == {"kernel.py": b"# %%kernel a\nx = 2\n"}
    assert alice.problems == ("Several cells start with %%kernel a; the last one counts.",)


# Git folders


def loose(git: Path, name: str, content: bytes) -> None:
    path = git / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(content))


def clone_with_tree(folder: Path, tree: bytes) -> Path:
    """A repository whose newest commit has a tree of these bytes."""
    class_layouts.git_clone(folder, {"kernel.py": A}, class_layouts.BEGIN)
    git, name = folder / ".git", "ab" * 20
    loose(git, name, b"tree %d\0" % len(tree) + tree)
    commit = f"tree {name}\n\n".encode()
    loose(git, "cd" * 20, b"commit %d\0" % len(commit) + commit)
    (git / "refs/heads/main").write_text("cd" * 20)
    return git


def entry(mode: str, name: bytes, target: str) -> bytes:
    return mode.encode() + b" " + name + b"\0" + bytes.fromhex(target)


def test_a_tree_that_contains_itself_ends(tmp_path):
    git = clone_with_tree(tmp_path / "alice", b"".join(
        entry("40000", name, "ab" * 20) for name in (b"a", b"b")))
    repository = Repository(git)

    with pytest.raises(UnusableFile, match="has more than 20,000 files"):
        repository.files(repository.commit())


def test_links_submodules_and_strange_names_of_a_commit_are_left_out(tmp_path):
    blob = next((tmp_path / "alice/.git/objects").glob("??/*"), None)
    git = clone_with_tree(tmp_path / "alice", b"".join((
        entry("120000", b"link.py", "ef" * 20), entry("160000", b"sub", "ef" * 20),
        entry("100644", b"..", "ef" * 20), entry("100644", b"../../x.py", "ef" * 20))))
    repository = Repository(git)

    files, left_out = repository.files(repository.commit())

    assert (files, blob) == ({}, None)
    assert left_out == {"link.py": "is a link", "sub": "is a submodule",
                        "..": "has a name that is not permitted",
                        "../../x.py": "has a name that is not permitted"}


@pytest.mark.parametrize("content", [
    b"tree 10\0short", b"tree 9999999999\0", b"no header", b"", b"tree -1\0", b"blob 1\0x",
    b"tree 7\0100644 ", b"commit 6\0parent"])
def test_damaged_objects_are_an_error_and_nothing_more(tmp_path, content):
    git = clone_with_tree(tmp_path / "alice", b"")
    loose(git, "ab" * 20, content)
    repository = Repository(git)

    with pytest.raises(UnusableFile):
        repository.files(repository.commit())


@pytest.mark.parametrize("head", [
    "ref: ../../../secret", "ref: refs/heads/../../../secret", "ref: refs/heads/.invalid",
    "ref: refs/heads/loop", "nonsense", "", "\0"])
def test_references_stay_within_the_git_folder(tmp_path, head):
    class_layouts.git_clone(tmp_path / "alice", {"kernel.py": A}, class_layouts.BEGIN)
    git = tmp_path / "alice/.git"
    (tmp_path / "secret").write_text("ab" * 20)
    (git / "refs/heads/loop").write_text("ref: refs/heads/loop")
    (git / "HEAD").write_text(head)

    with pytest.raises(UnusableFile, match="has no commit 'HEAD'"):
        Repository(git).commit()


def test_links_within_a_git_folder_are_not_followed(tmp_path):
    class_layouts.git_clone(tmp_path / "secret", {"kernel.py": b"secret"}, class_layouts.BEGIN)
    class_layouts.git_clone(tmp_path / "in/alice", {"kernel.py": A}, class_layouts.BEGIN)
    objects = tmp_path / "in/alice/.git/objects"
    objects.rename(tmp_path / "moved")
    objects.symlink_to(tmp_path / "secret/.git/objects")
    head = (tmp_path / "secret/.git/refs/heads/main").read_text()
    (tmp_path / "in/alice/.git/refs/heads/main").write_text(head)

    alice, = read(tmp_path / "in")

    assert alice.files == {"kernel.py": A}
    assert alice.at is None


def test_a_git_file_that_names_another_folder_is_not_followed(tmp_path):
    class_layouts.git_clone(tmp_path / "secret", {"kernel.py": b"secret"}, class_layouts.BEGIN)
    lay(tmp_path / "in", {"alice/kernel.py": A, "alice/.git": b"gitdir: ../../secret/.git"})

    assert [one.files for one in read(tmp_path / "in")] == [{"kernel.py": A}]


def test_damaged_packs_are_an_error_and_nothing_more(tmp_path):
    class_layouts.git_clone(tmp_path / "alice", {"kernel.py": A}, class_layouts.BEGIN)
    git = tmp_path / "alice/.git"
    name = (git / "refs/heads/main").read_text().strip()
    counts = struct.pack(">256I", *(byte >= int(name[:2], 16) for byte in range(256)))
    index = (b"\xfftOc\0\0\0\x02" + counts + bytes.fromhex(name) + bytes(4)
             + struct.pack(">I", 12) + bytes(40))
    for part, pack in ((b"", b""), (index[:100], b"PACK"), (index, b"PACK" + bytes(20)),
                       (index, b"PACK" + bytes(8) + b"\xe1\x01" + b"\x80" * 50),
                       (index, b"PACK" + bytes(8) + b"\xff" * 20_000_000),
                       (index, b"PACK" + bytes(8) + b"\x61" + b"\xff" * 20_000_000),
                       (index, b"PACK" + bytes(8) + b"\x95\x0a\x0c" + bytes(9))):
        (git / "objects/pack/pack-1.idx").write_bytes(part)
        (git / "objects/pack/pack-1.pack").write_bytes(pack)

        with pytest.raises(UnusableFile, match="missing or damaged"):
            Repository(git).commit()
