"""The verbs `explain` and `codes`: the meaning of a finding, and the table of all codes."""

import difflib
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tritonlab.cli import options
from tritonlab.cli.boundary import show, verb
from tritonlab.cli.options import Json, Plain
from tritonlab.errors import TritonlabError

if TYPE_CHECKING:
    from grader.diagnosis.examples import Example


@verb
def explain(
    code: Annotated[str | None, typer.Argument(
        metavar="[CODE]", help="A name such as store-out-of-bounds, or a code such as M02; all are "
                               "listed if left out.", autocompletion=options.codes)] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """What a finding means, with wrong and repaired code."""
    from grader.diagnosis.examples import examples
    from tritonlab.render import explain as view

    every = examples()
    if code is None:
        show(as_json, plain, {"schema": 1, "codes": [
            {"code": one.code, "name": one.name} for one in every.values()]},
             lambda screen: view.show_all(screen, [*every.values()]), "tritonlab explain CODE")
        return 0
    example = _find(code, "tritonlab explain")
    show(as_json, plain, {"schema": 1, **asdict(example)},
         lambda screen: view.show_one(screen, example), "tritonlab grade",
         "Repair it, then type: ")
    return 0


@verb
def codes(
    code: Annotated[str | None, typer.Argument(
        metavar="[CODE]", help="A code or a name; all are listed if left out.",
        autocompletion=options.codes)] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """The table of all codes: name, what reports it, and what it means."""
    from grader.diagnosis.examples import examples
    from tritonlab.render import explain as view

    chosen = [_find(code, "tritonlab codes")] if code else [*examples().values()]
    show(as_json, plain, {"schema": 1, "codes": [
        {"code": one.code, "name": one.name, "emitter": one.emitter, "summary": one.summary}
        for one in chosen]},
         lambda screen: view.show_table(screen, chosen),
         f"tritonlab explain {chosen[0].code if code else 'CODE'}")
    return 0


def _find(word: str, command: str) -> "Example":
    """Returns the code or name that ``word`` means.

    Raises:
        TritonlabError: there is none; ``command`` lists all.
    """
    from grader.diagnosis.examples import examples

    names = {name: one for one in examples().values() for name in (one.code, one.name)}
    wanted = word.strip().strip("()")
    example = names.get(wanted.upper()) or names.get(wanted.lower())
    if example is None:
        near = difflib.get_close_matches(wanted.lower(), [name.lower() for name in names], n=1)
        suggestion = f" Did you mean {(names.get(near[0].upper()) or names[near[0]]).name}?" \
            if near else ""
        raise TritonlabError(f"No finding is called '{word}'.{suggestion}",
                             f"`{command}` lists all.")
    return example
