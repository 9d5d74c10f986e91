"""Paths that a child may read: Python, packages and system libraries, without hidden files."""

import functools
import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import FileFinder
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64",
           "/usr/share/locale", "/usr/share/zoneinfo", "/usr/share/i18n",
           "/etc/ld.so.cache", "/etc/localtime",
           "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
           "/dev/zero", "/dev/urandom", "/dev/random")
_LIBRARIES = ("torch", "numpy", "triton")
WRITABLE = (Path("/dev/null"),)
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")


@functools.cache
def hidden() -> tuple[Path, ...]:
    """Suites and solutions of this installation and of any course among the packages."""
    folders = {_PACKAGE.parent, *map(Path.resolve, _folders_of_packages())}
    return tuple(path for folder in sorted(folders) for path in hidden_in(folder))


def hidden_in(folder: Path) -> list[Path]:
    """The hidden entries of a folder of packages; a folder with a course.toml is a course."""
    courses = [path.parent for path in folder.glob("*/course.toml")]
    usual = (folder / "grader" / "suites", folder / "tritonlab")
    return sorted({*courses, *filter(Path.exists, usual)})


@functools.cache
def readable() -> tuple[Path, ...]:
    """Files, and folders with all below them, that every child may read.

    A folder with something hidden is not listed as a whole; its other entries are, one by one.
    """
    roots = [Path(path) for path in _SYSTEM]
    roots += [Path(prefix) / name for prefix in {sys.prefix, sys.base_prefix}
              for name in ("lib", "lib64", "pyvenv.cfg")]
    roots += [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    roots += [*_folders_of_packages(), _PACKAGE, *_linked_packages(*_LIBRARIES)]
    paths = {path.resolve(): None for path in roots if path.exists()}
    whole = [path for path in paths if not any(path.is_relative_to(other)
                                               for other in paths if other != path)]
    return tuple(part for root in whole for part in without(root, hidden()))


def keep_listings() -> None:
    """Makes this process and its forks keep the listings of the folders of packages.

    Python lists such a folder anew when it has changed, as by an installation. A child may not list
    one that has something hidden in it, and would lose all packages there.
    """
    for finder in list(sys.path_importer_cache.values()):
        if isinstance(finder, FileFinder):
            finder.find_spec("")  # lists what it has not listed yet
            finder._fill_cache = functools.partial(  # type: ignore[attr-defined]
                _list_or_keep, finder, finder._fill_cache)  # type: ignore[attr-defined]


def _list_or_keep(finder: Any, fill: Callable[[], None]) -> None:
    kept = finder._path_cache, finder._relaxed_path_cache
    fill()
    if not finder._path_cache:
        finder._path_cache, finder._relaxed_path_cache = kept


def of_python() -> tuple[Path, ...]:
    """Files that every import needs; the child's user must be able to read them."""
    return (Path(os.__file__), _PACKAGE / "__init__.py",
            *(Path(module.__file__) for name in _LIBRARIES
              if (module := sys.modules.get(name)) is not None and module.__file__))


@functools.cache
def programs() -> tuple[Path, ...]:
    """Programs of the compiler: Triton's assembler and its like."""
    tools = [package / "backends" / "nvidia" / "bin" for package in _linked_packages("triton")]
    return (*tools, *(Path(path).resolve() for path in _LOADERS)) if tools else ()


@functools.cache
def of_a_gpu() -> tuple[Path, ...]:
    """Paths that the GPU's driver and a C compiler need beside ``readable``."""
    roots = [Path(path) for path in ("/usr", "/bin", "/sbin", "/sys", "/proc", "/etc/alternatives",
                                     "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/nvidia",
                                     "/etc/passwd", "/dev/nvidia-caps")]
    roots += [Path(sysconfig.get_path(name)) for name in ("include", "platinclude")]
    roots += [Path(path) for name in ("LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH")
              for path in os.environ.get(name, "").split(":") if path]
    if compiler := os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang"):
        roots.append(Path(compiler).resolve().parents[1])  # its bin, and what lies beside that
    return tuple(part for root in roots if root.exists()
                 for part in without(root.resolve(), hidden()))


def _linked_packages(*names: str) -> Iterator[Path]:
    """Folders of packages, wherever links into the folder of packages lead."""
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).resolve().parent


def _folders_of_packages() -> list[Path]:
    """Folders where packages are installed; other entries of ``sys.path`` are left out."""
    folders = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    folders += [Path(path) for path in sys.path
              if Path(path).name in ("site-packages", "dist-packages")]
    for prefix in {sys.prefix, sys.base_prefix}:
        folders += Path(prefix).glob("lib/python3*/*-packages")
    return folders


def without(root: Path, secrets: Iterable[Path]) -> Iterator[Path]:
    """The largest parts of ``root`` without ``secrets``; links are left out."""
    if root in secrets:
        return
    if not any(path.is_relative_to(root) for path in secrets):
        yield root
        return
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink():  # one may lead to what is hidden
            yield from without(entry, secrets)
