"""The verb `explain`: the meaning of a finding's code, with an example."""

import difflib
from dataclasses import asdict
from typing import Annotated

import typer

from tritonlab.cli import options
from tritonlab.cli.boundary import show, verb
from tritonlab.cli.options import Json, Plain
from tritonlab.errors import TritonlabError


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
    names = {name: one for one in every.values() for name in (one.code, one.name)}
    wanted = code.strip().strip("()")
    example = names.get(wanted.upper()) or names.get(wanted.lower())
    if example is None:
        near = difflib.get_close_matches(wanted.lower(), [name.lower() for name in names], n=1)
        suggestion = f" Did you mean {(names.get(near[0].upper()) or names[near[0]]).name}?" \
            if near else ""
        raise TritonlabError(f"No finding is called '{code}'.{suggestion}",
                             "`tritonlab explain` lists all.")
    show(as_json, plain, {"schema": 1, **asdict(example)},
         lambda screen: view.show_one(screen, example), "tritonlab grade",
         "Repair it, then type: ")
    return 0
