"""JUnit XML: a test suite for a grade, a test case for each check.

The elements are those of the schema of Jenkins, which GitLab and others read too:
https://github.com/jenkinsci/xunit-plugin/tree/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from grader.report import Verdict
from tritonlab.formats.annotations import (
    clean,
    described,
    one_line,
    undecided,
    weak_isolation,
)
from tritonlab.formats.steps import steps

_MOST_OUTPUT_CHARS = 20_000
_PROPERTIES = ("verdict", "evidence", "isolation", "engine", "target", "source_sha256",
               "suite_sha256", "grader_version")


def render(report: Mapping[str, Any], module_id: str, at: datetime | None = None) -> str:
    """Returns the file of one grade; arguments as of ``test_suite``."""
    return document([test_suite(report, module_id, at=at)])


def document(suites: Iterable[ET.Element]) -> str:
    """Returns a file of several test suites; its characters are ASCII."""
    root = ET.Element("testsuites")
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return content.decode() + "\n"


def test_suite(report: Mapping[str, Any], module_id: str, name: str = "",
               at: datetime | None = None) -> ET.Element:
    """Returns the test suite of a grade.

    A check that was too noisy to tell counts as skipped. If a grade does not pass although no
    check fails, a test case of its own fails.

    Args:
        report: from ``grader.report.Report.to_dict``.
        name: of the suite, such as a student's; by default the module's id.
        at: the time of the submission or of the grade.
    """
    cases = [*_steps(report, module_id), *_checks(report, module_id)]
    bad = {"failure", "error"}
    if report["verdict"] != Verdict.PASSED and not any(bad & {e.tag for e in c} for c in cases):
        case = _case("the grade is decided", f"{module_id}/grade", 0)
        reason = undecided(report) or "The grade is not conclusive; grade once more."
        _outcome(case, "error", str(report["verdict"]), reason)
        cases.append(case)
    counts = {tag: sum(case.find(tag) is not None for case in cases)
              for tag in ("failure", "error", "skipped")}
    suite = ET.Element("testsuite", {
        "name": clean(name or module_id), "tests": str(len(cases)),
        "failures": str(counts["failure"]), "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]), "time": f"{report['seconds']:.3f}"})
    if at:
        suite.set("timestamp", at.isoformat(timespec="seconds"))
    properties = ET.SubElement(suite, "properties")
    for key, value in {"module": module_id, **{p: report[p] for p in _PROPERTIES}}.items():
        ET.SubElement(properties, "property", {"name": key, "value": clean(str(value))})
    suite.extend(cases)
    if report["output"]:
        ET.SubElement(suite, "system-out").text = clean(report["output"], _MOST_OUTPUT_CHARS)
    if weak := weak_isolation(report["isolation"]):
        ET.SubElement(suite, "system-err").text = clean(weak)
    return suite


def _steps(report: Mapping[str, Any], module_id: str) -> Iterator[ET.Element]:
    for step in steps(report):
        case = _case(step.title, f"{module_id}/step", 0)
        if step.state == "unchecked":
            _outcome(case, "skipped", "", step.sentence)
        elif not step.right:
            _outcome(case, "failure", step.state, step.sentence)
        yield case


def _checks(report: Mapping[str, Any], module_id: str) -> Iterator[ET.Element]:
    for result in report["results"]:
        case = _case(result["name"], f"{module_id}/{result['kind']}", result["seconds"])
        finding = result["findings"][0] if result["findings"] else None
        failed = result["verdict"] == Verdict.FAILED
        message = clean(result["reason"] or "failed")
        if failed and finding:
            message = f"{finding['code']} {finding['name']}: {one_line(finding['seen'])}"
        if failed and result["advisory"]:
            _outcome(case, "skipped", "", f"This check never decides. {message}")
        elif failed:
            _outcome(case, "failure", finding["name"] if finding else "", message,
                     described(finding) if finding else "")
        elif result["verdict"] == Verdict.ERROR:
            _outcome(case, "error", "", message)
        elif result["verdict"] != Verdict.PASSED:
            _outcome(case, "skipped", "", message)
        yield case


def _case(name: str, group: str, seconds: float) -> ET.Element:
    return ET.Element("testcase", {"name": clean(name), "classname": group.replace("/", "."),
                                   "time": f"{seconds:.3f}"})


def _outcome(case: ET.Element, tag: str, kind: str, message: str, text: str = "") -> None:
    element = ET.SubElement(case, tag, {"message": clean(message)})
    if kind:
        element.set("type", kind)
    element.text = text or None


