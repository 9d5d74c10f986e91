"""The files of a class: submissions by content, and results by what decides them."""

import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import os
import secrets
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonlab.classroom import events
from tritonlab.classroom.events import Log
from tritonlab.errors import TritonlabError, not_saved, reason_of, shown, unreadable
from tritonlab.progress import safe_files

FOLDER = ".tritonlab-class"
SCHEMA = 1
SECRET = "secret"
_BLOCK = tarfile.BLOCKSIZE


class Store:
    """The folder ``.tritonlab-class``.

    Blobs and results are written once, by rename, under names that follow from their content: any
    number of processes may write them. A damaged file counts as absent.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER

    def create(self) -> None:
        """Creates the folders; raises NotSaved if that fails."""
        try:
            for name in ("blobs", "results", "claims"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            safe_files.create(self.folder / SECRET, secrets.token_hex(32).encode())
        except OSError as error:
            raise not_saved("The class", error, self.folder) from error

    # Events

    def log(self) -> Log:
        """Reads the events; raises NotSaved if they cannot be read."""
        return events.read(self.folder)

    def append(self, *new: Mapping[str, Any]) -> Log:
        """Appends events; raises NotSaved if nothing was written."""
        return events.append(self.folder, new)

    # Submissions

    def add(self, files: Mapping[str, bytes]) -> str:
        """Stores a submission's files, and returns its digest.

        ``flush`` puts all blobs that were added on disk.

        Raises:
            NotSaved: it cannot be written.
        """
        content = _packed(files)
        digest = hashlib.sha256(content).hexdigest()
        path = self._blob(digest)
        try:
            if self._content(path, digest) is None:
                path.parent.mkdir(exist_ok=True)
                temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
                temporary.write_bytes(content)
                temporary.replace(path)
        except OSError as error:
            raise not_saved("The submission", error, path) from error
        return digest

    def flush(self) -> None:
        """Waits until all blobs are on disk, before an event names them."""
        os.sync()

    def files(self, digest: str) -> dict[str, bytes]:
        """Returns the files of a submission.

        Raises:
            TritonlabError: it is missing or damaged.
        """
        path = self._blob(digest)
        content = self._content(path, digest)
        if content is None:
            raise TritonlabError(f"A stored submission is missing or damaged: {shown(path)}.",
                                 "Import it again.")
        return _unpacked(content)

    def _blob(self, digest: str) -> Path:
        return self.folder / f"blobs/{digest[:2]}/{digest[2:]}.tar"

    def _content(self, path: Path, digest: str) -> bytes | None:
        try:
            content = _read(path)
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    # Results

    def result_path(self, key: str) -> Path:
        return self.folder / f"results/{key}.json.gz"

    def has_result(self, key: str) -> bool:
        return self.result_path(key).exists()

    def result(self, key: str) -> dict[str, Any] | None:
        """Returns a result; None if there is none, or only a damaged one."""
        try:
            text = gzip.decompress(_read(self.result_path(key)))
            digest, _, body = text.partition(b"\n")
            if digest != hashlib.sha256(key.encode() + body).hexdigest().encode():
                return None
            data: dict[str, Any] = json.loads(body)
            return data if data["schema"] == SCHEMA else None
        except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error, RecursionError):
            return None

    def save_result(self, key: str, data: Mapping[str, Any]) -> None:
        """Writes a result; raises NotSaved if that fails."""
        body = json.dumps({"schema": SCHEMA, **data}, separators=(",", ":")).encode()
        digest = hashlib.sha256(key.encode() + body).hexdigest().encode()
        path = self.result_path(key)
        try:
            with safe_files.opened(path.parent) as folder:
                safe_files.replace(folder, path.name, gzip.compress(digest + b"\n" + body, mtime=0))
        except OSError as error:
            raise not_saved("The result", error, path) from error

    @contextlib.contextmanager
    def claimed(self, key: str) -> Iterator[bool]:
        """Claims a grade until the block ends; yields whether no other process has claimed it.

        The claim is a file lock, which ends with its process. Where the file system has no locks,
        two processes may do the same work, which only costs time.
        """
        path = self.folder / "claims" / key
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TritonlabError(f"{shown(path.parent)} cannot be written: {reason_of(error)}.",
                                 "Make the folder of the class writable.") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:
                pass
            yield True
            with contextlib.suppress(OSError):
                path.unlink()
        finally:
            os.close(descriptor)

    # Seeds

    def seed(self, assignment: str, module: str) -> str:
        """Returns the secret seed that all grades of an assignment's module share.

        Raises:
            NotSaved: the secret of the class cannot be read.
        """
        try:
            secret = (self.folder / SECRET).read_bytes()
        except OSError as error:
            raise unreadable(error, self.folder, "The secret of the class") from error
        text = secret + f"\0{assignment}\0{module}".encode()
        return hashlib.sha256(text).hexdigest()[:32]


def _read(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:  # faster for small files
        return file.read()


def digest_of(files: Mapping[str, bytes]) -> str:
    """Returns the digest that ``Store.add`` gives to these files."""
    return hashlib.sha256(_packed(files)).hexdigest()


def _packed(files: Mapping[str, bytes]) -> bytes:
    """Returns a tar archive that depends on names and contents only."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    return stream.getvalue()


def _unpacked(content: bytes) -> dict[str, bytes]:
    """The files of an archive of ours; ``tarfile`` is ten times as slow for plain headers."""
    files: dict[str, bytes] = {}
    place = 0
    while (header := content[place:place + _BLOCK]).strip(b"\0"):
        if header[156:157] != tarfile.REGTYPE:  # a long name, or one that is not ASCII
            return _extracted(content)
        size = int(header[124:135], 8)
        place += _BLOCK
        files[header[:100].rstrip(b"\0").decode()] = content[place:place + size]
        place += -(-size // _BLOCK) * _BLOCK
    return files


def _extracted(content: bytes) -> dict[str, bytes]:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for entry in archive:
            file = archive.extractfile(entry)
            if file is not None:
                files[entry.name] = file.read()
    return files
