"""Hidden suites under pytest, with a grade's verdicts: ``--tritonlab-kernel PATH suite.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grader.report import CaseResult, Finding, Kind, Verdict

if TYPE_CHECKING:  # loaded with the first suite, so that other test runs stay fast
    from grader.judge.context import Context
    from grader.suite import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tritonlab")
    group.addoption("--tritonlab-kernel", metavar="PATH",
                    help="path of the kernel.py to judge")
    group.addoption("--tritonlab-seed", metavar="HEX", help="repeat the inputs of an earlier grade")


def pytest_pycollect_makemodule(module_path: Path,
                                parent: pytest.Collector) -> pytest.Collector | None:
    if module_path.name != "suite.py" or not parent.config.getoption("--tritonlab-kernel"):
        return None
    return SuiteFile.from_parent(parent, path=module_path)


@pytest.fixture
def submission() -> None:
    """Stands in where a suite is collected without ``--tritonlab-kernel``."""
    raise pytest.UsageError("A suite needs a kernel: pass --tritonlab-kernel PATH.")


class CaseFailed(Exception):
    """The kernel failed a case."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(result.name)
        self.result = result


class SuiteFile(pytest.File):
    """One suite and the submission that it judges."""

    def collect(self) -> Iterator[pytest.Item]:
        from grader.engine.compiler import targets
        from grader.judge import compile_gate
        from grader.submission import source
        from grader.suite import load

        self.suite = load(self.path)
        try:
            self.submitted = source.read(Path(self.config.getoption("--tritonlab-kernel")),
                                         self.suite.files, self.suite.kernel_file)
        except source.UnreadableSubmission as error:
            raise pytest.UsageError(str(error)) from error
        for case in self.suite.ordered():
            yield SuiteItem.from_parent(self, name=case.name, case=case)
        yield SuiteItem.from_parent(self, name=compile_gate.name_for(targets.find()), case=None)

    def setup(self) -> None:
        from grader.judge.context import Context
        from grader.processes.sandbox import GradingSandbox
        from grader.submission import source

        self.refused: list[Finding] = source.inspect(
            self.submitted, self.suite.signatures, self.suite.blanks)
        seed = self.config.getoption("--tritonlab-seed")
        self.sandbox = GradingSandbox()
        self.ctx: Context = Context(self.submitted, self.suite, self.sandbox, seed=seed)

    def teardown(self) -> None:
        self.ctx.session().close()
        self.sandbox.close()


class SuiteItem(pytest.Item):
    """One case of a suite; None stands for the compile gate."""

    parent: SuiteFile

    def __init__(self, *, case: Case | None, **options: Any) -> None:
        super().__init__(**options)
        self.case = case

    def runtest(self) -> None:
        from grader.judge import single_case
        from grader.judge.case import verdict

        suite_file = self.parent
        if suite_file.refused:
            result = CaseResult(self.name, Kind.CORRECTNESS, Verdict.FAILED,
                                tuple(suite_file.refused))
        elif self.case is not None:
            result = verdict(self.case, suite_file.ctx)
        elif suite_file.ctx.gate.used:
            result = suite_file.ctx.gate.result()
        else:
            pytest.skip("nothing was launched")
        result = single_case.diagnosed(result, suite_file.ctx)
        match result.verdict:
            case Verdict.SKIPPED | Verdict.INCONCLUSIVE:
                pytest.skip(result.reason)
            case Verdict.ERROR:
                pytest.fail(f"the grader broke:\n{result.reason}", pytrace=False)
            case Verdict.FAILED if result.advisory:
                pytest.xfail(f"advisory: {result.findings[0].seen}")
            case Verdict.FAILED:
                raise CaseFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException],
                     style: Any = None) -> str | Any:
        if not isinstance(excinfo.value, CaseFailed):
            return super().repr_failure(excinfo, style)
        lines = []
        for finding in excinfo.value.result.findings:
            lines.append(f"{finding.name}  {finding.seen}")
            lines += [f"     {part}" for part in (finding.means, finding.where) if part]
        return "\n".join(lines)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.parent.suite.name}: {self.name}"
