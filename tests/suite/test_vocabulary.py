"""The reference of the suite vocabulary has every public name of it, and the code's defaults."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import grader.suite
from grader.suite import designs, error_bounds, mutants, predictions, spec

PAGE = (Path(__file__).parents[2] / "docs" / "suites.md").read_text()
SECTIONS = dict(re.findall(
    r"^###? `([\w.]+)`\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE))
CLASSES = ["Case", "Call", "Reading", "Tree", "Limits", "CheckResult", "CompiledCode", "Suite",
           "Cost", "Bench", "Tolerance", "Amplitude"]
SIGNATURES = re.findall(r"^\| `(\w+)\((.*?)\)`", PAGE, re.MULTILINE)
SYMBOLS = {"FLOAT32": spec.FLOAT32}
OTHERS = {"Function", "Input", "Property", "Recording"}  # fields of a suite, or set by no author


def functions() -> dict[str, object]:
    """The functions that an author calls, by name."""
    public = {name: getattr(grader.suite, name) for name in grader.suite.__all__}
    return {name: value for name, value in public.items() if inspect.isfunction(value)} | {
        name: value for module in (predictions, designs, error_bounds)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
        and not name.startswith("_")} | {"Sparse": grader.suite.Sparse}


def signature(value: object) -> str:
    """Parameters and their defaults as Python, without types."""
    bare = [one.replace(annotation=inspect.Parameter.empty)
            for one in inspect.signature(value).parameters.values()]
    return str(inspect.Signature(bare))


def normal(arguments: str) -> str:
    """The parameters of a function in one spelling."""
    return ast.unparse(ast.parse(f"def f({arguments}): ...").body[0].args)


def rows(section: str) -> list[list[str]]:
    """The cells of the rows of a table of fields, which has four columns."""
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if len(row) == 4]


def default(field: dataclasses.Field) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@pytest.mark.parametrize("name", grader.suite.__all__)
def test_every_public_name_is_on_the_page(name):
    assert re.search(rf"`{name}\b|`\(?\"?{name}\(|\b{name}\b = ", PAGE)


@pytest.mark.parametrize(("name", "arguments"), SIGNATURES, ids=[name for name, _ in SIGNATURES])
def test_a_signature_is_that_of_the_code(name, arguments):
    known = functions()

    assert name in known
    assert normal(arguments) == normal(signature(known[name])[1:-1])


def test_every_function_has_a_signature_or_a_sentence():
    shown = {name for name, _ in SIGNATURES}

    assert {name for name in functions() if name not in shown} == {
        "digest", "load", "read_mutants", "sibling"}


@pytest.mark.parametrize("name", CLASSES)
def test_a_table_has_the_fields_of_a_class_with_their_defaults(name):
    kind = getattr(grader.suite, name)
    hidden = getattr(kind, "FILLED_BY_LOAD", ())
    fields = {one.name: one for one in dataclasses.fields(kind) if one.name not in hidden}
    table = rows(SECTIONS[name])

    assert [cells[0].strip("`") for cells in table] == list(fields)
    for cells in table:
        value = default(fields[cells[0].strip("`")])
        match cells[2]:
            case "":
                assert value is dataclasses.MISSING, cells
            case text if text.startswith("required"):
                assert value in (spec._not_given, spec._UNSTATED), cells
            case text:
                text = text.strip("`")
                assert SYMBOLS.get(text, text) == value or ast.literal_eval(text) == value, cells


def test_every_class_has_a_table():
    kinds = {name for name in grader.suite.__all__
             if dataclasses.is_dataclass(kind := getattr(grader.suite, name))
             and isinstance(kind, type)}

    assert kinds - {*CLASSES, *OTHERS, "Sparse", "Mutant"} == set()


def test_the_keys_of_mutants_are_those_that_are_read():
    mutant, patch = SECTIONS["mutants.toml"].split("`[[mutant.patch]]` | type")

    def keys(table: str) -> dict[str, str]:
        return {key: cells[2] for cells in rows(table) for key in re.findall(r"\w+", cells[0])}

    assert set(keys(mutant)) == set(mutants._KEYS)
    assert {key for key, needed in keys(mutant).items() if needed == "yes"} == set(mutants._NEEDED)
    assert set(keys(patch)) == {one.name for one in dataclasses.fields(mutants.Patch)}


def test_the_constants_of_the_tolerance_are_those_of_the_code():
    assert f"KAPPA = {spec.KAPPA:g}" in PAGE
    assert (spec.FLOAT32, spec.TENSOR_CORES) == (2.0**-24, 2.0**-22)
    floats = re.search(r'`(\("float32.*?\))`', PAGE)[1]
    assert ast.literal_eval(floats) == grader.suite.FLOATS
