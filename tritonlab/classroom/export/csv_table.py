"""A CSV file that keeps every byte of the cells that are not set."""

import re
from dataclasses import dataclass

from tritonlab.errors import TritonlabError

MOST_BYTES = 32_000_000  # of a file to fill in; 600 students and 100 columns have about 500,000
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"(?!")')


@dataclass
class _Line:
    cells: list[str]  # as written, with their quotes
    end: str


class CsvTable:
    """The rows of a CSV file; cells that are not set are written as they were read.

    The separator is a comma, a semicolon or a tab. The encoding is UTF-8, UTF-16 with a byte-order
    mark, or else Windows-1252.
    """

    def __init__(self, content: bytes, name: str) -> None:
        """Parses the content of a file called ``name``.

        Raises:
            TritonlabError: it is not CSV.
        """
        self._encoding = _encoding_of(content)
        try:
            text = content.decode(self._encoding)
        except UnicodeDecodeError:
            raise _not_csv(f"{name} is damaged: it is not {self._encoding.upper()}.") from None
        self._start = re.match(r"\ufeff?(?:sep=.(?:\r\n|\r|\n))?", text)[0]  # type: ignore[index]
        self.separator = _separator_of(text, self._start)
        self._lines = self._parse(text, name)

    def _parse(self, text: str, name: str) -> list[_Line]:
        separator = re.escape(self.separator)
        cell = re.compile(rf'({_QUOTED.pattern}[^{separator}\r\n]*|(?!")[^{separator}\r\n]*)'
                          rf"(?P<end>{separator}|\r\n|\r|\n|\Z)")
        lines: list[_Line] = []
        cells: list[str] = []
        place = len(self._start)
        while place < len(text) or cells:
            match = cell.match(text, place)
            if match is None:
                raise _not_csv(f"{name} is not CSV: a quote of row {len(lines) + 1} has no end.")
            cells.append(match[1])
            place = match.end()
            if match["end"] != self.separator:
                lines.append(_Line(cells, match["end"]))
                cells = []
        return lines

    def __len__(self) -> int:
        return len(self._lines)

    def __bytes__(self) -> bytes:
        text = "".join(self.separator.join(line.cells) + line.end for line in self._lines)
        return (self._start + text).encode(self._encoding)

    def row(self, row: int) -> list[str]:
        """Returns the values of a row, without quotes and space around them."""
        return [self._value(cell) for cell in self._lines[row].cells]

    def value(self, row: int, column: int) -> str:
        """Returns a value without quotes and space around it; empty if the row is too short."""
        cells = self._lines[row].cells
        return self._value(cells[column]) if column < len(cells) else ""

    def set(self, row: int, column: int, value: str) -> None:
        """Sets a value; a row that is too short is filled up."""
        cells = self._lines[row].cells
        cells.extend([""] * (column + 1 - len(cells)))
        cells[column] = self._written(value, quoted=cells[column].startswith('"'))

    def insert(self, row: int, column: int, value: str) -> None:
        """Inserts a cell before a column; a row that is too short is filled up for a value only."""
        cells = self._lines[row].cells
        if value:
            cells.extend([""] * (column - len(cells)))
        if column <= len(cells):
            neighbor = cells[column - 1] if column else ""
            cells.insert(column, self._written(value, quoted=neighbor.startswith('"')))

    def _value(self, cell: str) -> str:
        if self._encoding == "latin-1":
            cell = cell.encode("latin-1").decode("cp1252", "replace")
        match = _QUOTED.match(cell)
        return (match[1].replace('""', '"') + cell[match.end():] if match else cell).strip()

    def _written(self, value: str, *, quoted: bool) -> str:
        value = value.encode(self._encoding, "xmlcharrefreplace").decode(self._encoding)
        if quoted or re.search(r'["\r\n]', value) or self.separator in value or \
                value != value.strip():
            return '"' + value.replace('"', '""') + '"'
        return value


def _encoding_of(content: bytes) -> str:
    """Returns an encoding in which decoding and encoding give the same bytes."""
    for start, encoding in _BOMS:
        if content.startswith(start):
            return encoding
    try:
        content.decode()
    except UnicodeDecodeError:
        return "latin-1"  # Windows-1252 lacks five bytes; cells are decoded as such for reading
    return "utf-8"


def _separator_of(text: str, start: str) -> str:
    if "sep=" in start:  # Excel's own first line
        return start.partition("sep=")[2][0]
    header = re.sub(r'"[^"]*"', "", text[len(start):len(start) + 100_000]).lstrip("\r\n")
    first = re.split(r"[\r\n]", header, maxsplit=1)[0]
    return max(",;\t", key=first.count)


def _not_csv(sentence: str) -> TritonlabError:
    return TritonlabError(sentence, "Export it again, and do not edit it in between.")
