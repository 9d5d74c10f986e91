"""The exercises in a notebook: cells that start with ``%%kernel``, or with the tag ``kernel``."""

import re
from dataclasses import dataclass

import msgspec

from grader.submission import syntax
from tritonlab.errors import UnusableFile

_MAGIC = re.compile(r"\s*%%kernel(?:[ \t]+(\S+))?[^\n]*")
_LINE_MAGIC = re.compile(r"^(?=\s*[%!])", re.MULTILINE)
TAG = "kernel"


@dataclass(frozen=True)
class KernelCell:
    """The source of an exercise, with the lines of its cells, and its module where one is named."""

    module: str | None
    source: bytes


class _Metadata(msgspec.Struct):
    tags: list[str] = []


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else "".join(self.source)


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


def kernels(data: bytes) -> tuple[list[KernelCell], list[str]]:
    """Returns the exercises in a notebook, and sentences about cells that were left out.

    The last cell of a module counts. Tagged cells without ``%%kernel`` are joined, as one may hold
    the imports and the next the kernel. Magics become comments, so that lines keep their numbers.

    Raises:
        UnusableFile: it is not a notebook, or has no such cell.
    """
    try:
        notebook = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Notebook)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UnusableFile("It is not a notebook of Jupyter's format 4.") from error
    by_module: dict[str | None, str] = {}
    tagged: list[str] = []
    problems = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if magic := _MAGIC.match(cell.text):
            module = magic[1]
            if module in by_module:
                problems.append(f"Several cells start with %%kernel {module or ''}".rstrip()
                                + "; the last one counts.")
            by_module[module] = f"# {cell.text.lstrip()}"
        elif TAG in cell.metadata.tags:
            tagged.append(cell.text)
    if tagged and not by_module:
        by_module[None] = "\n\n".join(text.rstrip("\n") for text in tagged)
    if not by_module:
        raise UnusableFile("The notebook has no cell that starts with %%kernel, and none with the "
                           f"tag {TAG}.")
    return [KernelCell(module, _without_magics(text).encode())
            for module, text in by_module.items()], problems


def _without_magics(text: str) -> str:
    """Turns lines such as ``%matplotlib inline`` and ``!pip list`` into comments."""
    text = text.rstrip() + "\n"
    if syntax.tree_of(text).body:  # also where a line of an expression starts with %
        return text
    return _LINE_MAGIC.sub("# ", text)
