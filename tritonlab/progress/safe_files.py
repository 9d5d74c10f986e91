"""Crash-safe file operations under a lock: append, atomic replace, exclusive create.

Names are relative to an open folder, and symbolic links are not followed.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

LOCK_TIMEOUT_S = 10.0
STRAY_AGE_S = 3600.0
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    """Opens ``folder``, which must be a real folder, and yields its descriptor."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _SAFE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(folder: int, *, shared: bool = False,
           timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Holds the folder's lock.

    Raises:
        TimeoutError: another process kept it for ``timeout_s``.
        OSError: the lock file cannot be opened.
    """
    flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
    descriptor = os.open(".lock", flags | _SAFE | os.O_NONBLOCK, 0o600, dir_fd=folder)
    try:
        deadline = time.monotonic() + timeout_s
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)  # releases the lock


@contextlib.contextmanager
def reading(path: Path) -> Iterator[int]:
    """Opens a folder once no writer holds its lock, or if it has no lock file."""
    with opened(path) as folder, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(locked(folder, shared=True))
        yield folder


@contextlib.contextmanager
def writing(path: Path) -> Iterator[int]:
    """Opens and locks a folder without strays; defers SIGINT until the block ends.

    Raises:
        OSError: it cannot be opened or locked.
    """
    with uninterrupted(), opened(path) as folder, locked(folder):
        sweep(folder)
        yield folder


@contextlib.contextmanager
def opened_file(folder: int, name: str) -> Iterator[BinaryIO | None]:
    """Opens a regular file for reading; yields None if it does not exist."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _SAFE, dir_fd=folder)
    except FileNotFoundError:
        yield None
        return
    _insist_on_regular(descriptor, name)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read(folder: int, name: str, most: int | None = None) -> bytes | None:
    """Returns the content of a regular file; None if it does not exist.

    Raises:
        OSError: it cannot be read, or has more than ``most`` bytes.
    """
    with opened_file(folder, name) as file:
        if file is None:
            return None
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
        return file.read()


def append(folder: int, name: str, line: bytes) -> None:
    """Appends one line in one write and waits until it is on disk.

    A line that an interrupted write left incomplete is ended with a newline first, so that only
    that line is lost. Nothing is truncated.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | _SAFE
    new = False
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        descriptor = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        new = True
    _insist_on_regular(descriptor, name)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        content = (b"\n" if torn else b"") + line + b"\n"
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if new:
        os.fsync(folder)


def replace(folder: int, name: str, content: bytes, mode: int = 0o600) -> None:
    """Replaces a file atomically: readers see the old content or the new one.

    Args:
        mode: permissions, before the umask.
    """
    temporary = f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def sweep(folder: int) -> None:
    """Removes temporary files that a killed process left more than an hour ago."""
    oldest = time.time() - STRAY_AGE_S
    for name in os.listdir(folder):
        if name.startswith(".") and name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                    os.unlink(name, dir_fd=folder)


def set_aside(folder: int, name: str, label: str) -> str:
    """Renames a damaged file to ``<name>.damaged-<label>`` and returns that name."""
    aside = f"{name}.damaged-{label}"
    number = 2
    while _exists(folder, aside):
        aside = f"{name}.damaged-{label}-{number}"
        number += 1
    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    return aside


def create(path: Path, content: bytes) -> bool:
    """Creates a file completely or not at all; False if the name is taken."""
    with opened(path.parent) as folder:
        if _exists(folder, path.name):
            return False
        temporary = f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
        replace(folder, temporary, content)
        try:
            os.link(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            return True
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        os.fsync(folder)
    return True


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Defers SIGINT until the block ends, so that a write is complete or not begun."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def remember(number: int, frame: Any) -> None:
        waiting.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


def _exists(folder: int, name: str) -> bool:
    return os.access(name, os.F_OK, dir_fd=folder, follow_symlinks=False)


def _insist_on_regular(descriptor: int, name: str) -> None:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, f"{name} is not a regular file")
