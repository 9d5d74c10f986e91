"""Reads commits and files from a git folder without running git.

A student's repository is not trusted. Git would read its configuration and may run what is named
there; here only objects and references are read, with limits. Loose objects and packs of version 2
are understood, with SHA-1 and SHA-256.
"""

import mmap
import os
import re
import struct
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property, partial
from pathlib import Path

from tritonlab.classroom.importers.file_tree import MOST_LARGE, Entry, from_disk, printable
from tritonlab.errors import UnusableFile

_MOST_ENTRIES = 20_000  # of a commit
_DEEPEST = 32  # folders
_LONGEST_CHAIN = 300  # deltas; git writes at most 50
_LARGEST = 1 << 62
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _REFERENCE_DELTA = 6, 7
_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE = re.compile(r"refs(?:/[A-Za-z0-9_@+-][A-Za-z0-9._@+-]*)+")
_COMMITTER = re.compile(rb"committer [^\n]*> (\d{1,12}) ([+-])(\d\d)(\d\d)")
_BROKEN = (OSError, ValueError, IndexError, struct.error, zlib.error, OverflowError)


@dataclass(frozen=True)
class Commit:
    """A commit: its id, its committer's time, which the student's clock gives, and its tree."""

    id: str
    at: datetime | None
    tree: str


@dataclass(frozen=True)
class Repository:
    """A folder ``.git``, or a bare repository."""

    folder: Path

    def commit(self, reference: str = "HEAD") -> Commit:
        """Returns the commit of a reference: HEAD, a branch, a tag or a full id.

        Raises:
            UnusableFile: there is no such reference, or an object is missing or damaged.
        """
        name = self._resolved(reference)
        for _ in range(8):  # tags of tags
            kind, data = self._object(name, 1_000_000)
            if kind == "commit":
                tree = re.match(rb"tree ([0-9a-f]+)\n", data)
                if tree is None:
                    break
                return Commit(name, _time(data.partition(b"\n\n")[0]), tree[1].decode())
            target = re.match(rb"object ([0-9a-f]+)\n", data)
            if kind != "tag" or target is None:
                break
            name = target[1].decode()
        raise UnusableFile(f"'{printable(reference)}' is not a commit.")

    def files(self, commit: Commit) -> tuple[dict[str, Entry], dict[str, str]]:
        """Returns the regular files of a commit by path, and why other entries were left out.

        Raises:
            UnusableFile: there are too many, or an object is missing or damaged.
        """
        files: dict[str, Entry] = {}
        left_out: dict[str, str] = {}
        waiting = [(commit.tree, "")]
        entries = 0
        while waiting:
            tree, prefix = waiting.pop()
            kind, data = self._object(tree, MOST_LARGE)
            if kind != "tree":
                raise UnusableFile("A folder of the commit is damaged.")
            for mode, name, target in _listed(data, len(tree) // 2):
                entries += 1
                if entries > _MOST_ENTRIES:
                    raise UnusableFile(f"The commit has more than {_MOST_ENTRIES:,} files.")
                path = prefix + name
                if name in ("", ".", "..") or "/" in name:
                    left_out[printable(path)] = "has a name that is not permitted"
                elif mode == "40000":
                    if prefix.count("/") < _DEEPEST:
                        waiting.append((target, f"{path}/"))
                elif mode in ("100644", "100755", "100664"):
                    files[path] = Entry(0, partial(self._blob, target))
                else:
                    left_out[path] = "is a link" if mode == "120000" else "is a submodule"
        return files, left_out

    def _blob(self, name: str, most: int) -> bytes:
        return self._object(name, most)[1]

    def _resolved(self, reference: str) -> str:
        if _HEX.fullmatch(reference):
            return reference
        places = [reference] if reference == "HEAD" or reference.startswith("refs/") else [
            f"refs/{kind}/{reference}" for kind in ("tags", "heads", "remotes/origin")]
        for place in places:
            for _ in range(5):  # symbolic references
                value = self._reference(place)
                if not value.startswith("ref: "):
                    break
                place = value.removeprefix("ref: ").strip()
            if _HEX.fullmatch(value):
                return value
        raise UnusableFile(f"The repository has no commit '{printable(reference)}'.")

    def _reference(self, name: str) -> str:
        if name != "HEAD" and (not _REFERENCE.fullmatch(name) or ".." in name):
            return ""
        try:
            return self._small(name, 4_096).decode().strip()
        except (UnusableFile, UnicodeDecodeError):
            pass
        try:
            packed = self._small("packed-refs", MOST_LARGE).decode(errors="replace")
        except UnusableFile:
            return ""
        line = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.MULTILINE)
        return line[1] if line else ""

    def _object(self, name: str, most: int) -> tuple[str, bytes]:
        """The kind and content of an object of at most ``most`` bytes."""
        try:
            for pack in self._packs:
                if (offset := pack.offset(bytes.fromhex(name))) is not None:
                    return self._packed(pack, offset, most, len(name) // 2)
            return self._loose(name, most)
        except _BROKEN as error:
            raise UnusableFile(f"The object {printable(name)[:12]} of its git folder is missing or "
                               "damaged.") from error

    def _loose(self, name: str, most: int) -> tuple[str, bytes]:
        if not _HEX.fullmatch(name):
            raise ValueError(name)
        packed = self._small(f"objects/{name[:2]}/{name[2:]}", most + 65_536)
        data = zlib.decompressobj().decompress(packed, most + 64)
        header, _, content = data.partition(b"\0")
        kind, _, size = header.partition(b" ")
        _check_size(int(size), most)
        if len(content) != int(size):
            raise ValueError(name)
        return kind.decode(), content

    def _packed(self, pack: "_Pack", offset: int, most: int, width: int) -> tuple[str, bytes]:
        deltas: list[bytes] = []
        while True:
            kind, size, at = pack.header(offset)
            _check_size(size, most)
            if kind in _KINDS:
                content = pack.inflated(at, size)
                break
            if len(deltas) >= _LONGEST_CHAIN:
                raise ValueError("too many deltas")
            if kind == _OFFSET_DELTA:
                distance, at = pack.distance(at)
                offset -= distance
                if offset <= 0:
                    raise ValueError("a base outside the pack")
            elif kind == _REFERENCE_DELTA:
                base = pack.offset(pack.data[at:at + width])
                if base is None:
                    raise ValueError("a delta without its base")
                at, offset = at + width, base
            else:
                raise ValueError(kind)
            deltas.append(pack.inflated(at, size))
        for delta in reversed(deltas):
            content = _patched(content, delta, most)
        return _KINDS[kind], content

    @cached_property
    def _packs(self) -> list["_Pack"]:
        folder = self.folder / "objects" / "pack"
        if not self._is_inside(folder) or not folder.is_dir():
            return []
        packs = [_Pack(_mapped(path.with_suffix(".pack")), _mapped(path))
                 for path in sorted(folder.glob("*.idx"))[:1_000]]
        return [pack for pack in packs if pack.index[:8] == b"\xfftOc\0\0\0\x02"]

    def _small(self, name: str, most: int) -> bytes:
        path = self.folder / name
        if not self._is_inside(path.parent):
            raise UnusableFile("Its git folder holds links.")
        return from_disk(path, most)

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)) == Path(os.path.realpath(self.folder)) / \
            path.relative_to(self.folder)


@dataclass(frozen=True)
class _Pack:
    """A pack and its index, both of version 2."""

    data: mmap.mmap
    index: mmap.mmap

    def offset(self, name: bytes) -> int | None:
        """Where an object begins in the pack; None if it is not in it."""
        (count,) = struct.unpack_from(">I", self.index, 8 + 4 * 255)
        first = struct.unpack_from(">I", self.index, 4 + 4 * name[0])[0] if name[0] else 0
        (end,) = struct.unpack_from(">I", self.index, 8 + 4 * name[0])
        names, width = 8 + 4 * 256, len(name)
        while first < end:
            middle = (first + end) // 2
            at = names + width * middle
            if (other := self.index[at:at + width]) == name:
                offsets = names + count * (width + 4)
                (offset,) = struct.unpack_from(">I", self.index, offsets + 4 * middle)
                if offset & 1 << 31:
                    at = offsets + 4 * count + 8 * (offset & (1 << 31) - 1)
                    (offset,) = struct.unpack_from(">Q", self.index, at)
                return int(offset)
            if other < name:
                first = middle + 1
            else:
                end = middle
        return None

    def header(self, offset: int) -> tuple[int, int, int]:
        """The kind and size of the entry at an offset, and where its content begins."""
        byte = self.data[offset]
        kind, size, at = byte >> 4 & 7, byte & 15, offset + 1
        if byte & 0x80:
            rest, at = _varint(self.data, at)
            size |= rest << 4
        return kind, size, at

    def distance(self, at: int) -> tuple[int, int]:
        """How far before an entry its base lies, and where the content begins."""
        byte = self.data[at]
        distance = byte & 0x7F
        while byte & 0x80:
            at += 1
            byte = self.data[at]
            distance = (distance + 1) << 7 | byte & 0x7F
            if distance > _LARGEST:
                break
        if not 0 < distance <= _LARGEST:
            raise ValueError("a base outside the pack")
        return distance, at + 1

    def inflated(self, at: int, size: int) -> bytes:
        # zlib's worst case adds 5 bytes in 16,383 and a header.
        content = zlib.decompressobj().decompress(self.data[at:at + size + size // 1_000 + 128],
                                                  size + 1)
        if len(content) != size:
            raise ValueError("an object of another size")
        return content


def _patched(base: bytes, delta: bytes, most: int) -> bytes:
    """The content that a delta makes of its base."""
    base_size, at = _varint(delta, 0)
    size, at = _varint(delta, at)
    _check_size(size, most)
    content = bytearray()
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 0x80:
            start = length = 0
            for bit in range(7):
                if code & 1 << bit:
                    if bit < 4:
                        start |= delta[at] << 8 * bit
                    else:
                        length |= delta[at] << 8 * (bit - 4)
                    at += 1
            content += base[start:start + (length or 0x10000)]
        elif code:
            content += delta[at:at + code]
            at += code
        else:
            raise ValueError("an unknown instruction")
        if len(content) > size:
            break
    if len(base) != base_size or len(content) != size:
        raise ValueError("a delta of another size")
    return bytes(content)


def _varint(data: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 63, 7):
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise ValueError("a size of more than 63 bits")


def _listed(tree: bytes, width: int) -> list[tuple[str, str, str]]:
    """The mode, name and object id of each entry of a tree."""
    entries, at = [], 0
    try:
        while at < len(tree):
            space, end = tree.index(b" ", at), tree.index(b"\0", at)
            target = tree[end + 1:end + 1 + width]
            if len(target) != width:
                raise ValueError("an entry without an id")
            entries.append((tree[at:space].decode(), os.fsdecode(tree[space + 1:end]),
                            target.hex()))
            at = end + 1 + width
    except ValueError as error:
        raise UnusableFile("A folder of the commit is damaged.") from error
    return entries


def _time(header: bytes) -> datetime | None:
    match = re.search(_COMMITTER, header)
    if match is None:
        return None
    offset = timedelta(hours=int(match[3]), minutes=int(match[4]))
    try:
        return datetime.fromtimestamp(int(match[1]),
                                      timezone(-offset if match[2] == b"-" else offset))
    except (ValueError, OverflowError, OSError):
        return None


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise UnusableFile(f"It has {size:,} bytes; at most {most:,} are read.")


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
