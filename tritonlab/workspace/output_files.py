"""Output files that the user names: checked in advance, written atomically."""

import errno
from dataclasses import dataclass
from pathlib import Path

from tritonlab.errors import NotSaved, TritonlabError, shown
from tritonlab.progress import safe_files

# The path is right, and the disk is full, read-only or broken.
_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO))


@dataclass(frozen=True)
class OutputKind:
    """A kind of output: its name, its option and its file name endings."""

    name: str
    option: str
    endings: tuple[str, ...]

    @property
    def another(self) -> str:
        return f"Name another file with `{self.option} FILE`."


PAGE = OutputKind("page", "--html", (".html", ".htm"))
PICTURE = OutputKind("picture", "--png", (".png",))


def check(path: Path | None, kind: OutputKind = PAGE) -> None:
    """Checks that a file may be written to ``path``, if one is asked for.

    Raises:
        TritonlabError: there is no such folder, or another file would be overwritten.
    """
    if path is None:
        return
    if not path.absolute().parent.is_dir():
        raise TritonlabError(f"The {kind.name} cannot be written to {shown(path)}: there is no "
                             "such folder.", kind.another)
    if path.is_dir():
        raise TritonlabError(f"{shown(path)} is a folder, so no {kind.name} is written there.",
                             f"Name a file in it, such as "
                             f"`{kind.option} {shown(path / f'{kind.name}{kind.endings[0]}')}`.")
    if path.exists() and path.suffix.lower() not in kind.endings:
        raise TritonlabError(f"{shown(path)} already exists and is not a {kind.name}, so it is "
                             "left alone.", kind.another)


def write(content: bytes | str, path: Path, kind: OutputKind = PAGE) -> None:
    """Writes an output file atomically, text as UTF-8.

    Raises:
        NotSaved: the disk is full, read-only or broken.
        TritonlabError: no file can be written at that path.
    """
    try:
        real = path.resolve()  # of a link, the file that it leads to
        with safe_files.opened(real.parent) as folder:
            safe_files.replace(folder, real.name, content if isinstance(content, bytes)
                               else content.encode(), mode=0o666)
    except (OSError, RuntimeError) as error:  # the latter for links that lead in a circle
        reason = str(getattr(error, "strerror", None) or error).lower()
        failure = NotSaved if getattr(error, "errno", None) in _DISK else TritonlabError
        raise failure(f"The {kind.name} cannot be written to {shown(path)}: {reason}.",
                      kind.another) from error
