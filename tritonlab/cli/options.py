"""The options and arguments that verbs share, and their completion in shells.

Completion runs at every press of Tab, so it loads neither torch nor any suite: the cases of a
module are those of its last grade.
"""

import functools
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from grader.engine.compiler import targets
from grader.finding import NAMES
from tritonlab.course.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.progress import caches
from tritonlab.workspace import course_choice, workspace
from tritonlab.workspace.submission import current
from tritonlab.workspace.workspace import Workspace

Completion = tuple[str, str]  # the word and its description

P = ParamSpec("P")
T = TypeVar("T")


class _InQuotes(str):
    """A quoted word for a shell; typer drops other words without the typed prefix."""

    def startswith(self, *_: Any) -> bool:
        return True


def harmless(function: Callable[P, list[T]]) -> Callable[P, list[T]]:
    """Completes nothing after an error, which the command itself reports."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> list[T]:
        try:
            return function(*args, **kwargs)
        except (TritonlabError, OSError, ValueError):
            return []

    return guarded


@harmless
def modules(incomplete: str) -> list[Completion]:
    """Completes ids of modules, otherwise their other names, such as 1.3 or a slug."""
    modules = [*course_choice.load().modules]
    by_id = [(module.id, module.title) for module in modules if module.id.startswith(incomplete)]
    return by_id or [(name, module.title) for module in modules
                     for name in (module.slug, *module.names) if name.startswith(incomplete)]


@harmless
def tracks(incomplete: str) -> list[Completion]:
    """Completes prefixes of ids, such as ``track2/``."""
    return [(f"{track.id}/", track.title) for track in course_choice.load().tracks]


@harmless
def gpus(incomplete: str) -> list[Completion]:
    """Completes names of GPUs."""
    return [(target.name, target.title) for target in targets.all_targets().values()]


@harmless
def codes(incomplete: str) -> list[Completion]:
    """Completes names of findings, otherwise their codes."""
    by_name = [(name, code) for code, name in NAMES.items() if name.startswith(incomplete)]
    return by_name or [(code, name) for code, name in NAMES.items()
                       if code.startswith(incomplete.upper())]


@harmless
def functions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes the functions of the module that have hints."""
    the_course = course_choice.load()
    module = _module_meant(ctx, the_course, workspace.require(the_course.example))
    return list(dict.fromkeys(name for group in module.hints for name in group.functions))


@harmless
def cases(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes the case names of the module's last grade.

    They contain spaces. zsh and fish escape them; for bash they are quoted here unless the user has
    opened a quote.
    """
    the_course = course_choice.load()
    place = workspace.require(the_course.example)
    names = caches.load_case_names(place.mark).get(_module_meant(ctx, the_course, place).id, [])
    matches = [name for name in names if name.startswith(incomplete)]
    return [_InQuotes(shlex.quote(name)) for name in matches] if _bash_wants_quotes() else matches


def _module_meant(ctx: typer.Context, the_course: Course, place: Workspace) -> Module:
    """Returns the module of the words before the cursor, otherwise the current one."""
    # An option without its value ends typer's parsing early, so arguments may be unparsed.
    argument = ctx.params.get("module_id") or ctx.params.get("exercise") or next(iter(ctx.args), "")
    if not argument:
        return current(the_course, place)
    return place.module_of(Path(argument).expanduser(), the_course) or the_course.find(argument)


def _bash_wants_quotes() -> bool:
    if os.environ.get("_TRITONLAB_COMPLETE") != "complete_bash":
        return False
    words = os.environ["COMP_WORDS"].split("\n")
    at = int(os.environ["COMP_CWORD"])
    return at >= len(words) or not words[at].startswith(("'", '"'))


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Plain = Annotated[bool, typer.Option(
    "--plain", help="Print one fact per line, without color or tables.")]
OptionalId = Annotated[str | None, typer.Argument(
    metavar="[ID]", help="Default: the current module.",
    autocompletion=modules)]
ModuleId = Annotated[str, typer.Argument(
    metavar="ID", help="Module, such as track1/softmax or 1.3.", autocompletion=modules)]
CurrentOr = Annotated[str | None, typer.Argument(
    metavar="[ID or PATH]", help="Default: the current module.",
    autocompletion=modules)]
OfModule = Annotated[str | None, typer.Option(
    "--module", metavar="ID", help="Module that the file at PATH belongs to.",
    autocompletion=modules)]
Gpu = Annotated[bool, typer.Option(
    "--gpu/--no-gpu", help="Also run and time the kernels on this machine's GPU, if it has one.")]
Quick = Annotated[bool, typer.Option(
    "--quick", help="Leave out the GPU where it has passed the same kernels.")]
Function = Annotated[str | None, typer.Option(
    metavar="NAME", help="Function to write or fix.",
    autocompletion=functions)]
