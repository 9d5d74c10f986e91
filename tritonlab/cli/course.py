"""The verbs of `tritonlab course`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli.boundary import show, verb
from tritonlab.cli.classroom import show_pack
from tritonlab.cli.options import Json, Plain
from tritonlab.course import course
from tritonlab.errors import TritonlabError

app = typer.Typer(name="course", rich_markup_mode=None, no_args_is_help=True,
                  help="For authors: create a course of your own, and build it for students.")


@app.command()
@verb
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the course.")],
    course_id: Annotated[str, typer.Option(
        "--id", metavar="ID", help="Such as cs149. Default: derived from the folder.")] = "",
    title: Annotated[str, typer.Option(help="Default: the id.")] = "",
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Create a course with a first track and a first module, which already work."""
    from tritonlab.authoring import new_course
    from tritonlab.render import author as view

    files = new_course.create(folder, course_id, title)
    show(as_json, plain, {"schema": 1, "files": [str(path) for path in files]},
         lambda screen: view.show_new_course(screen, folder, files),
         f"tritonlab check --course {shlex.quote(str(folder))}")
    return 0


@app.command()
@verb
def pack(
    name: Annotated[str, typer.Argument(
        metavar="DIR or ID", help="The folder of a course, or the id of an installed one.")],
    student: Annotated[bool, typer.Option(
        "--student", help="For students: public cases only, and no solutions.")] = False,
    out: Annotated[Path | None, typer.Option(
        "--out", metavar="PATH", help="The folder to write.")] = None,
    torch_index: Annotated[str, typer.Option(
        "--torch-index", metavar="URL", help="The package index of PyTorch for CPUs. Default: "
        "PyTorch's own.")] = "",
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Build a course for students: a wheel without hidden cases and solutions."""
    from tritonlab.classroom.pack import build

    if not student:
        raise TritonlabError("A course is built for students only.", "Add --student.")
    roots = course.roots_of(name)
    the_course = course.load(roots)
    packed = build.of_course(the_course, roots, torch_index=torch_index or build.TORCH_INDEX)
    place = out or build.default_place(Path(), the_course.id, "student")
    show_pack(packed, place, as_json, plain, "tritonlab list", {"course": the_course.id})
    return 0
