"""The files of a folder, a zip or a tar archive, read in memory without extracting anything.

Nothing in them is trusted: links are not followed, devices are not opened, and sizes are counted as
bytes are read. Names may hold any bytes.
"""

import contextlib
import gzip
import io
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from grader.submission.source import MAX_BYTES
from tritonlab.errors import UnusableFile, reason_of
from tritonlab.progress.journal import JOURNAL, MARK

V = TypeVar("V")

MOST_ENTRIES = 100_000  # of a folder or an archive
MOST_EXPANDED = 1 << 30  # bytes that a tar archive may decompress to
MOST_HELD = 1 << 28  # bytes of a tar archive's files, which are kept in memory
MOST_INNER = 8_000_000  # bytes of an archive within another, as it is there
MOST_INNER_EXPANDED = 64_000_000
MOST_LARGE = 16_000_000  # bytes of a notebook or a journal
_DEEPEST = 32  # folders
_IGNORED = {"__MACOSX", "__pycache__", "node_modules"}
_HIDDEN = {MARK, ".classroom50.yaml"}  # read although their names begin with a dot
_RECORDS = {JOURNAL, "course.json"}  # read in the folder of a workspace's records
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, ValueError,
           LookupError, struct.error, OverflowError, RuntimeError)  # of a password; unsupported


@dataclass(frozen=True)
class Entry:
    """One file: its size as stated, and how to read it.

    ``read(most)`` raises UnusableFile where there are more bytes, or none can be read.
    """

    size: int
    read: Callable[[int], bytes]


@dataclass(frozen=True)
class FileTree:
    """The regular files below a folder by path, with slashes, relative to it.

    ``name`` is that of the folder, the archive without its ending, or the single file's folder.
    ``left_out``: path -> why it was not read. ``repositories``: folders that hold ``.git``.
    ``folder`` is the real folder, where there is one.
    """

    name: str
    files: Mapping[str, Entry]
    left_out: Mapping[str, str] = field(default_factory=dict)
    repositories: Mapping[str, Path] = field(default_factory=dict)
    folder: Path | None = None

    def content(self, path: str, most: int = MAX_BYTES) -> bytes:
        """Returns the bytes of a file.

        Raises:
            UnusableFile: it has more than ``most`` bytes, or cannot be read.
        """
        return self.files[path].read(most)

    @property
    def top(self) -> list[str]:
        """The names of the files that lie in no folder."""
        return [path for path in self.files if "/" not in path]

    @cached_property
    def children(self) -> dict[str, "FileTree"]:
        """The folders at the top, by name."""
        files, left_out, repositories = (
            _split(self.files), _split(self.left_out), _split(self.repositories))
        return {name: FileTree(name, files.get(name, {}), left_out.get(name, {}),
                               repositories.get(name, {}),
                               self.folder / name if self.folder else None)
                for name in sorted(files | repositories)}

    def unwrapped(self, is_submission: Callable[["FileTree"], bool]) -> "FileTree":
        """Returns the tree below folders that hold nothing but one folder.

        It stops at a folder for which ``is_submission`` holds.
        """
        tree = self
        while not tree.top and len(tree.children) == 1 and not tree.repositories.get(""):
            only = next(iter(tree.children.values()))
            if is_submission(only):
                break
            tree = only
        return tree


def _split(mapping: Mapping[str, V]) -> dict[str, dict[str, V]]:
    """Groups values by the first folder of their paths."""
    parts: dict[str, dict[str, V]] = {}
    for path, value in mapping.items():
        name, slash, rest = path.partition("/")
        if slash or (name and isinstance(value, Path)):  # a repository is a folder itself
            parts.setdefault(name, {})[rest] = value
    return parts


def printable(text: str) -> str:
    """Returns a name as it can be shown: undecodable and invisible characters as escapes."""
    return "".join(char if char.isprintable() and not 0xD800 <= ord(char) <= 0xDFFF else
                   f"\\x{ord(char) & 0xFF:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else
                   char.encode("unicode_escape").decode() for char in text)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[FileTree]:
    """Yields the tree of a folder, an archive or one file.

    Raises:
        UnusableFile: it is none of them, cannot be read, or is refused: a path leads out of an
            archive, there are more than ``MOST_ENTRIES`` entries, or it decompresses to too much.
    """
    with contextlib.ExitStack() as stack:
        yield _opened(path, printable(path.name or str(path)), stack)


def _opened(path: Path, where: str, stack: contextlib.ExitStack) -> FileTree:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            return _folder(path)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFile(f"{where} is neither a file nor a folder.")
        if is_archive(path.name):
            return archive(stack.enter_context(path.open("rb")), where, MOST_EXPANDED, MOST_HELD)
        folder = path.absolute().parent
        return FileTree(folder.name, {path.name: Entry(
            status.st_size, partial(from_disk, path))}, folder=folder)
    except OSError as error:
        raise UnusableFile(f"{where} cannot be read: {reason_of(error)}.",
                           "Check the path, then repeat the command.") from error


def is_archive(name: str) -> bool:
    """Whether a file name is that of an archive that ``archive`` reads."""
    return name.casefold().endswith((".zip", ".tar.gz", ".tgz", ".tar"))


def without_ending(name: str) -> str:
    """Returns the name of an archive or file without its ending."""
    return re.sub(r"(?i)(\.tar)?\.[a-z0-9]{1,5}$", "", name)


def archive(file: BinaryIO, name: str, most_expanded: int, most_held: int) -> FileTree:
    """Returns the tree of an archive, which stays in use; raises UnusableFile as ``opened``."""
    try:
        if name.casefold().endswith(".zip"):
            return _zip(file, name)
        return _tar(file, name, most_expanded, most_held)
    except _BROKEN as error:
        raise UnusableFile(f"{name} is damaged, or not an archive: {_reason(error)}.") from error


def beside(folder: Path, relative: str) -> Entry:
    """Returns the entry of a file below a folder on disk.

    Raises:
        UnusableFile: the path leads out of the folder, or there is no such file.
    """
    path = folder / "/".join(_parts(relative, relative))
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UnusableFile(f"{printable(relative)} leads out of its folder.")
    try:
        return Entry(path.lstat().st_size, partial(from_disk, path))
    except OSError as error:
        raise UnusableFile(f"{printable(relative)} cannot be read: {reason_of(error)}.") from error


def _folder(root: Path) -> FileTree:
    files: dict[str, Entry] = {}
    left_out: dict[str, str] = {}
    repositories: dict[str, Path] = {}
    waiting = [(str(root), "")]
    entries = 0
    while waiting:
        folder, prefix = waiting.pop()
        try:
            inside = sorted(os.scandir(folder), key=lambda item: item.name)
        except OSError as error:
            if not prefix:
                raise
            left_out[prefix.removesuffix("/")] = f"cannot be read: {reason_of(error)}"
            continue
        entries += len(inside)
        if entries > MOST_ENTRIES:
            raise _too_many(printable(root.name))
        for item in inside:
            path = prefix + item.name
            if item.is_symlink():
                left_out[path] = "is a link"
            elif item.name == ".git":
                if item.is_dir(follow_symlinks=False):
                    repositories[prefix.removesuffix("/")] = Path(item.path)
            elif not is_wanted(path):
                continue
            elif item.is_dir(follow_symlinks=False):
                if path.count("/") < _DEEPEST:
                    waiting.append((item.path, f"{path}/"))
                else:
                    left_out[path] = f"lies below {_DEEPEST} folders"
            elif item.is_file(follow_symlinks=False):
                files[path] = Entry(item.stat(follow_symlinks=False).st_size,
                                    partial(from_disk, Path(item.path)))
            else:
                left_out[path] = "is not a regular file"
    return FileTree(root.absolute().name, files, left_out, repositories, root)


def _zip(file: BinaryIO, name: str) -> FileTree:
    content = zipfile.ZipFile(file)
    infos = content.infolist()
    if len(infos) > MOST_ENTRIES:
        raise _too_many(name)
    files: dict[str, Entry] = {}
    left_out: dict[str, str] = {}
    for info in infos:
        path = "/".join(_parts(_zip_name(info), name))
        kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == 3 else 0
        if not path or info.is_dir() or not is_wanted(path):
            continue
        if kind not in (0, stat.S_IFREG):
            left_out[path] = _kind(kind == stat.S_IFLNK)
        elif info.flag_bits & 1:
            left_out[path] = "is encrypted"
        else:
            files[path] = Entry(info.file_size, partial(_from_zip, content, info))
    return FileTree(without_ending(name), files, left_out)


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name of an entry; Canvas writes UTF-8 without the flag that says so."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name if "/" in name else name.replace("\\", "/")


def _tar(file: BinaryIO, name: str, most_expanded: int, most_held: int) -> FileTree:
    files: dict[str, Entry] = {}
    left_out: dict[str, str] = {}
    start = file.read(2)
    file.seek(0)
    stream = gzip.GzipFile(fileobj=file) if start == b"\x1f\x8b" else file
    bounded = _Bounded(stream, most_expanded, name)
    held = entries = 0
    with tarfile.open(fileobj=bounded, mode="r|") as content:
        for member in content:
            entries += 1
            if entries > MOST_ENTRIES:
                raise _too_many(name)
            path = "/".join(_parts(member.name, name))
            if member.isdir() or not path or not is_wanted(path):
                continue
            if not member.isreg() or member.issparse():
                left_out[path] = _kind(member.issym() or member.islnk())
                continue
            data = b""
            if member.size <= max(MOST_LARGE, MOST_INNER):
                extracted = content.extractfile(member)
                data = extracted.read() if extracted else b""
                held += len(data)
                if held > most_held:
                    raise UnusableFile(f"The files in {name} have more than {most_held:,} bytes.",
                                       "Import parts of it.")
            files[path] = Entry(member.size, partial(_from_memory, data, member.size))
    return FileTree(without_ending(name), files, left_out)


class _Bounded(io.RawIOBase):
    """A stream that refuses to be read beyond a number of bytes."""

    def __init__(self, stream: gzip.GzipFile | BinaryIO, most: int, name: str) -> None:
        super().__init__()
        self._stream = stream
        self._left = most
        self._error = UnusableFile(f"{name} decompresses to more than {most:,} bytes.",
                                   "Import parts of it, or a folder.")

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise self._error
        return data


def _parts(path: str, name: str) -> list[str]:
    """The parts of a path within an archive; raises UnusableFile if it leads out."""
    parts = [part for part in PurePosixPath(path).parts if part != "."]
    if path.startswith("/") or re.match(r"[A-Za-z]:", path) or ".." in parts or "\0" in path:
        raise UnusableFile(f"The path '{printable(path)}' in {name} leads out of it.",
                           "Nothing of it was imported.")
    return parts


def is_wanted(path: str) -> bool:
    *folders, name = path.split("/")
    if MARK in folders:
        return folders[-1] == MARK and name in _RECORDS
    return not any(part in _IGNORED or (part.startswith(".") and part not in _HIDDEN)
                   for part in (*folders, name))


def from_disk(path: Path, most: int) -> bytes:
    """Returns the bytes of a regular file, without following a link.

    Raises:
        UnusableFile: it has more than ``most`` bytes, is another kind of file, or cannot be read.
    """
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnusableFile(f"{printable(path.name)} is not a regular file.")
            return _limited(file.read(most + 1), most, os.fstat(descriptor).st_size)
    except OSError as error:
        raise UnusableFile(f"{printable(path.name)} cannot be read: {reason_of(error)}.") from error


def _from_zip(content: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    if info.file_size > most:
        return _limited(b"", most, info.file_size)
    try:
        with content.open(info) as file:
            return _limited(file.read(most + 1), most, info.file_size)
    except _BROKEN as error:
        raise UnusableFile(f"{printable(_zip_name(info))} is damaged: {_reason(error)}.") from error


def _from_memory(data: bytes, size: int, most: int) -> bytes:
    return _limited(data, most, size)


def _limited(data: bytes, most: int, size: int) -> bytes:
    if max(len(data), size) > most:
        raise UnusableFile(f"It has {max(len(data), size):,} bytes; at most {most:,} are read.")
    return data


def _kind(is_link: bool) -> str:
    return "is a link" if is_link else "is not a regular file"


def _too_many(name: str) -> UnusableFile:
    return UnusableFile(f"{name} has more than {MOST_ENTRIES:,} entries.", "Import parts of it.")


def _reason(error: Exception) -> str:
    return printable(str(error))[:200].rstrip(".") or type(error).__name__
