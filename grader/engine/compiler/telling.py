"""Tells of a compiled launch what an inspection shows beside its Binary: listings and a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from grader.binary import Binary
from grader.engine.compiler import ptx
from grader.engine.compiler.prediction import predict
from grader.engine.compiler.sass import Code, code_of
from grader.engine.compiler.targets import Target
from grader.facts import Survey
from grader.listing import Listing, cut


def told(compiled: Any, binary: Binary, survey: Survey | None, target: Target, *,
         cold: bool = True) -> dict[str, Any]:
    """Listings and prediction, as plain data for ``grader.inspection.launch_of``.

    Args:
        compiled: Triton's CompiledKernel, as ``build`` returns it.
        binary: read from it.
        survey: of this launch; without one there is no prediction.
        cold: nothing that it reads is in L2 yet: so it is for the first launch of a call.

    Raises:
        grader.engine.compiler.sass.CannotDisassemble: the disassembler does not read it.
    """
    code = code_of(compiled)
    prediction = asdict(predict(binary, code, survey, target, cold)) if survey else None
    return {"ptx": _pairs(tuple(ptx.rows(compiled.asm["ptx"]))), "sass": _pairs(_listed(code)),
            "prediction": prediction}


def _listed(code: Code) -> Listing:
    return tuple((one.line, f"{one.address:04x}  {one}") for one in code.instructions
                 if not one.never)


def _pairs(listing: Listing) -> list[list[Any]]:
    return [list(row) for row in cut(listing)]
