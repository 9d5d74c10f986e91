"""What a shell offers when Tab is pressed: modules, tracks, GPUs, functions, names of cases.

It runs at every press, so it loads neither torch nor any suite: the cases of a module are those
that its last grade met.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import typer

from grader.engine.compiler import targets
from tritonlab import case_names, course, grading, workspace
from tritonlab.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.workspace import Workspace

Offer = tuple[str, str]  # what is typed, and what it is

P = ParamSpec("P")
T = TypeVar("T")


class _InQuotes(str):
    """A word in quotes for a shell. typer drops what does not begin with the word as typed."""

    def startswith(self, *_: Any) -> bool:
        return True


def harmless(function: Callable[P, list[T]]) -> Callable[P, list[T]]:
    """Offer nothing where something is amiss: what it is, the command itself will say."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> list[T]:
        try:
            return function(*args, **kwargs)
        except (TritonlabError, OSError, ValueError):
            return []

    return guarded


@harmless
def modules(incomplete: str) -> list[Offer]:
    """Ids of modules; where none begins like this, their other names, such as 1.3 or a slug."""
    known = [*course.load().modules]
    found = [(module.id, module.title) for module in known if module.id.startswith(incomplete)]
    return found or [(name, module.title) for module in known
                     for name in (module.slug, *module.names) if name.startswith(incomplete)]


@harmless
def tracks(incomplete: str) -> list[Offer]:
    """Beginnings of a module's id, such as ``track2/``."""
    known = ((f"{track.id}/", track.title) for track in course.load().tracks)
    return [offer for offer in known if offer[0].startswith(incomplete)]


@harmless
def gpus(incomplete: str) -> list[Offer]:
    """Names of the GPUs that kernels can be compiled for."""
    return [(target.name, target.title) for target in targets.all_targets().values()
            if target.name.startswith(incomplete)]


@harmless
def functions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the functions of the module for which there are hints."""
    the_course = course.load()
    module = _module_meant(ctx, the_course, workspace.require(the_course.example))
    return [name for group in module.hints for name in group.functions
            if name.startswith(incomplete)]


@harmless
def cases(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the cases of the module, as its last grade met them.

    They have blanks, at which a shell breaks words. zsh and fish see to that; bash is given names
    in quotes, unless the user has opened one.
    """
    the_course = course.load()
    place = workspace.require(the_course.example)
    names = case_names.kept(place.mark).get(_module_meant(ctx, the_course, place).id, [])
    found = [name for name in names if name.startswith(incomplete)]
    return [_InQuotes(shlex.quote(name)) for name in found] if _bash_wants_quotes() else found


def _module_meant(ctx: typer.Context, the_course: Course, place: Workspace) -> Module:
    """The module that the words before the cursor name, or else the current one."""
    # The option that waits for its value ends typer's reading early: arguments are left unread.
    named = ctx.params.get("module_id") or ctx.params.get("what") or next(iter(ctx.args), "")
    if not named:
        return grading.current(the_course, place)
    return place.module_of(Path(named).expanduser(), the_course) or the_course.find(named)


def _bash_wants_quotes() -> bool:
    if os.environ.get("_TRITONLAB_COMPLETE") != "complete_bash":
        return False
    words = os.environ["COMP_WORDS"].split("\n")
    at = int(os.environ["COMP_CWORD"])
    return at >= len(words) or not words[at].startswith(("'", '"'))
