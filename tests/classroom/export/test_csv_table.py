"""A CSV file keeps every byte of the cells that are not set."""

from __future__ import annotations

import pytest

from tritonlab.classroom.export.csv_table import CsvTable
from tritonlab.errors import TritonlabError

NASTY = {
    "nothing": b"",
    "one cell": b"a",
    "no final line end": b"a,b\r\n1,2",
    "blank lines": b"a,b\n\n\n1,2\n\n",
    "mixed line ends": b"a,b\r1,2\r\n3,4\n",
    "quotes": b'"a","b ""x"""\n"1,2","3\r\n4"\n" 5 ",6""7\n"8"9,x"y"\n',
    "ragged": b"a,b,c\n1\n1,2,3,4,,\n",
    "utf-8 with mark": "\ufeffName,é\r\nÖzgür,\U0001f600\r\n".encode(),
    "utf-16": "\ufeffa\tb\r\n1\té\r\n".encode("utf-16-le"),
    "utf-16 big": "\ufeffa,b\r\n1,é\r\n".encode("utf-16-be"),
    "windows-1252": b"Name,b\nJos\xe9,\x81\x93\n",
    "semicolons": b'"a,b";c;d\n1,5;2;3\n',
    "sep line": b"sep=;\r\na,b;c\r\n",
    "nul": b"a,b\n\x00,\x01\n",
}


@pytest.mark.parametrize("content", NASTY.values(), ids=NASTY)
def test_what_is_not_set_is_written_as_it_was_read(content):
    assert bytes(CsvTable(content, "x.csv")) == content


@pytest.mark.parametrize("content", NASTY.values(), ids=NASTY)
def test_a_value_that_is_set_changes_its_cell_alone(content):
    table = CsvTable(content, "x.csv")
    before = [table.row(row) for row in range(len(table))]
    for row in range(len(table)):
        table.set(row, 0, 'new, "one"')

    again = CsvTable(bytes(table), "x.csv")

    assert [again.row(row)[1:] for row in range(len(again))] == [row[1:] for row in before]
    assert all(again.value(row, 0) == 'new, "one"' for row in range(len(again)))


def test_values_have_no_quotes():
    table = CsvTable(b'"a ""b""", c ;x\n', "x.csv")

    assert table.row(0) == ['a "b"', "c ;x"]


def test_a_quoted_cell_stays_quoted():
    table = CsvTable(b'"a",b\n', "x.csv")
    table.set(0, 0, "1")
    table.set(0, 1, "2")
    table.set(0, 3, "4")

    assert bytes(table) == b'"1",2,,4\n'


def test_a_cell_is_inserted_like_its_neighbor():
    table = CsvTable(b'"a","b"\n1,2\n3\n', "x.csv")
    for row, value in enumerate(("new", "7", "")):
        table.insert(row, 2, value)

    assert bytes(table) == b'"a","b","new"\n1,2,7\n3\n'


@pytest.mark.parametrize("content", [b'a,"b', b'a\n"b""\nc,d', b"\xff\xfea"],
                         ids=["quote", "double quote", "odd utf-16"])
def test_what_is_not_csv_is_refused(content):
    with pytest.raises(TritonlabError, match=r"x\.csv is"):
        CsvTable(content, "x.csv")
