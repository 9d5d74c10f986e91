"""Self-contained HTML pages: lessons, kernels, a learner's progress."""

import base64
import functools
import hashlib
import itertools
import re
import shlex

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import token as tokens
from pygments.lexers import PythonLexer

from grader.bench.benchmark import Benchmark
from grader.inspect.inspection import Inspection
from grader.text import plural, sentence
from tritonlab.course.course import Module
from tritonlab.progress.certificate import Certificate
from tritonlab.progress.progress_report import Overview
from tritonlab.render import bench_text, certificate_text, inspect_text, progress, unit_times
from tritonlab.render import quantities as q
from tritonlab.render.lesson_text import displayed
from tritonlab.verify import certificate_reader

# The functions that draw import `charts` themselves: it loads matplotlib.
# The CSS classes of families of tokens; the first that holds a token counts.
_KINDS = {tokens.Comment: "comment", tokens.String.Interpol: "", tokens.String: "string",
          tokens.Keyword.Constant: "number", tokens.Keyword: "keyword",
          tokens.Operator.Word: "keyword", tokens.Number: "number",
          tokens.Name.Function: "name", tokens.Name.Class: "name",
          tokens.Name.Decorator: "decorator", tokens.Name.Builtin: "builtin",
          tokens.Name.Exception: "builtin"}
_FOLDED = re.compile(r'(<h2 id="(?:best-practices|pitfalls|going-further)">.*?</h2>)'
                     r"(.*?)(?=<h2|\Z)", re.DOTALL)
_EXAMPLE = re.compile(r'<h2 id="worked-example">.*?</h2>')
_LEAST_LISTED = 3  # sections from which on a lesson has a list of contents


def lesson(name: str, title: str, text: str, picture: str = "") -> str:
    """The page of a lesson, whose Markdown is ``text``; sections of tips are folded."""
    parser = _markdown()
    parsed = parser.parse(displayed(text))
    sections = _with_anchors(parsed)
    body = _FOLDED.sub(r"<details><summary>\1</summary>\2</details>",
                       parser.renderer.render(parsed, parser.options, {}))
    head, closed, rest = body.partition("</h1>\n")
    if picture:  # of the worked example's kernel; its title is the caption
        words = re.search("<title>(.*?)</title>", picture)
        rest = _EXAMPLE.sub(lambda heading: f"{heading[0]}<figure class=\"card scroll\">{picture}"
                         f"<figcaption>{words[1] if words else ''}</figcaption></figure>", rest, 1)
    script = _script("copy.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _templates().get_template("lesson.html").render(
        name=name, title=title, head=Markup(head + closed), body=Markup(rest),
        sections=sections if len(sections) >= _LEAST_LISTED else [],
        script=Markup(script), digest=digest)


def _with_anchors(parsed: list[Token]) -> list[tuple[str, str]]:
    """Gives headings an id and a link to it; returns id and text of those of the second level."""
    sections: list[tuple[str, str]] = []
    used: set[str] = set()
    for opening, inline in itertools.pairwise(parsed):
        if opening.type != "heading_open" or opening.tag == "h1":
            continue
        children = inline.children or []
        words = "".join(child.content for child in children)
        slug = re.sub(r"[^\w]+", "-", words.lower()).strip("-")
        slug = next(one for n in itertools.count(1)
                    if (one := slug + f"-{n}" * (n > 1)) not in used)
        used.add(slug)
        opening.attrSet("id", slug)
        link = Token("html_inline", "", 0)
        link.content = (f' <a class="anchor" href="#{escape(slug)}" '
                        f'aria-label="Link to {escape(words)}">#</a>')
        children.append(link)
        if opening.tag == "h2":
            sections.append((slug, words))
    return sections


def _script(name: str) -> str:
    environment = _templates()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def inspection(module: Module, inspection: Inspection) -> str:
    """The page of an inspection: table, annotated source, advice, roofline, listings."""
    from tritonlab.render import charts

    points = [(case, point) for case in inspection.cases if case.launches
              for point in case.points(inspection.target)]
    drawings = charts.inspection_svgs(
        [(case.name, point) for case, point in points], inspection.target,
        f"Roofline of an {inspection.target.title} with {plural(len(points), 'predicted point')}")
    names, facts, left = inspect_text.facts(inspection)
    sources = [(case, inspect_text.source_rows(inspection, case),
                max((line.bytes for line in case.lines.values()), default=0))
               for case in sorted(inspection.cases, key=lambda case: -case.bytes) if case.launches]
    return _templates().get_template("inspect.html").render(
        module=module, inspection=inspection, words=inspect_text, units=unit_times, names=names,
        facts=facts, left=left, sources=sources,
        parts=dict(enumerate(highlighted(inspection.text.expandtabs(4)), 1)),
        points=points, drawings=drawings, listings=inspect_text.distinct_launches(inspection),
        lines=dict(enumerate(map(str.strip, inspection.text.split("\n")), 1)),
        nowhere=[case for case in inspection.cases
                 if case.launches and not case.points(inspection.target)],
    )


def benchmark(module: Module, benchmark: Benchmark) -> str:
    """The page of a benchmark: the picture, and a table for each function."""
    from tritonlab.render import charts

    drawings = charts.benchmark_svgs(
        benchmark, f"Speed over size and roofline, {bench_text.promise(benchmark)}; "
                   "the tables below hold the numbers")
    return _templates().get_template("bench.html").render(
        module=module, benchmark=benchmark, words=bench_text, units=unit_times, drawings=drawings,
        classes=charts.CLASSES)


def certificate(certificate: Certificate, file: str) -> str:
    """The page of a certificate, to print on one sheet, with its data; it will be in ``file``."""
    data = certificate.to_dict()
    return _templates().get_template("certificate.html").render(
        certificate=certificate, words=certificate_text, data=data,
        electives=progress.of_electives(certificate.electives),
        fingerprint=certificate_reader.fingerprint(data),
        marker=Markup(certificate_reader.MARKER), command=f"tritonlab verify {shlex.quote(file)}")


def report(overview: Overview) -> str:
    """The page of a learner's progress: modules, attempts over time, benchmarks."""
    from tritonlab.render import charts

    benched = [(one, charts.benchmark_svgs(one.stored.benchmark,
                                           f"Speed over size of {one.module.id}"))
               for one in overview.benched]
    return _templates().get_template("report.html").render(
        overview=overview, certificate=overview.certificate, words=progress,
        timelines=charts.timeline_svgs(overview.days), benched=benched)


@functools.cache
def _templates() -> Environment:
    """The templates of pages; values are escaped."""
    environment = Environment(loader=PackageLoader("tritonlab.render"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        bytes=q.bytes_, share=q.share, three=q.three, seconds=q.seconds, plural=plural,
        sentence=sentence,
        code=lambda text: Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text)))))
    return environment


@functools.cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="card scroll"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _fence(_: object, tokens: list[Token], index: int, *__: object) -> str:
    code = tokens[index].content.rstrip("\n").expandtabs(4)
    language, _, words = tokens[index].info.strip().partition(" ")
    python = language == "python"
    body = "\n".join(
        "".join(f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text)
                for kind, text in line)
        for line in (highlighted(code) if python else [[("", code)]]))
    described = f' role="img" aria-label="{escape(words)}"' if words else ""
    block = f'<pre class="card"{described}><code>{body}</code></pre>\n'
    return block if language in ("", "text") else f'<div class="copied">{block}</div>\n'


def highlighted(code: str) -> list[list[tuple[str, str]]]:
    """Splits the lines of a Python file into spans (kind, text); plain code has no kind."""
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    spans = ((next((kind for family, kind in _KINDS.items() if token in family), ""), text)
             for token, text in lexer.get_tokens(code))
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, group in itertools.groupby(spans, key=lambda span: span[0]):
        first, *others = "".join(text for _, text in group).split("\n")
        lines[-1].append((kind, first))
        lines += [[(kind, text)] for text in others]
    return [[(kind, text) for kind, text in line if text] for line in lines]
