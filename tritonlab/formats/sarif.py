"""SARIF 2.1.0, the format of static analysis that code scanning reads.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import hashlib
import json
import os
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from grader.diagnosis.codes import MEANINGS
from grader.finding import NAMES
from grader.report import Verdict
from tritonlab.formats.annotations import Annotation, annotations

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NO_CODE = "check-failed"  # the rule of checks that fail without a finding


def render(report: Mapping[str, Any], module_id: str, file: str) -> str:
    """Returns a log of one run, with a result for each failure and its code as the rule.

    Args:
        report: from ``grader.report.Report.to_dict``.
        file: the path of ``kernel.py`` from the root of the repository, with slashes.
    """
    remarks = annotations(report, file)
    about_file = [remark for remark in remarks if remark.file]
    codes = list(dict.fromkeys(remark.code or _NO_CODE for remark in about_file))
    notifications = [{"level": remark.level, "message": {"text": remark.text}}
                     for remark in remarks if not remark.file]
    run = {
        "tool": {"driver": {
            "name": "tritonlab", "version": report["grader_version"],
            "rules": [_rule(code) for code in codes]}},
        "automationDetails": {"id": f"tritonlab/{module_id}/"},
        "invocations": [{
            "executionSuccessful": report["verdict"] != Verdict.ERROR,
            "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": _results(about_file, codes, module_id),
        "properties": {"verdict": report["verdict"], "evidence": report["evidence"],
                       "isolation": report["isolation"], "engine": report["engine"],
                       "source_sha256": report["source_sha256"],
                       "suite_sha256": report["suite_sha256"]},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    name = NAMES.get(code, code)
    rule = {"id": code, "name": name, "shortDescription": {"text": name.replace("-", " ")}}
    meaning = MEANINGS.get(code)
    help_text = f"{meaning or name} `tritonlab explain {name}` shows an example."
    return rule | ({"fullDescription": {"text": meaning}} if meaning else {}) | (
        {"help": {"text": help_text}} if code in NAMES else {})


def _results(remarks: Sequence[Annotation], codes: Sequence[str],
             module_id: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for remark in remarks:
        code = remark.code or _NO_CODE
        results.append({
            "ruleId": code, "ruleIndex": codes.index(code), "level": remark.level,
            "message": {"text": remark.text},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": _uri(remark.file)},
                "region": {"startLine": remark.line or 1, "startColumn": 1}}}],
            "partialFingerprints": {"tritonlabFinding/v1": _fingerprint(remark, module_id)},
            "properties": {"check": remark.check, "todos": list(remark.todos)},
        })
    return results


def _fingerprint(remark: Annotation, module_id: str) -> str:
    """Identifies a mistake over grades with other inputs and edits of other lines."""
    identity = (module_id, remark.code or remark.check, remark.function, *map(str, remark.todos))
    return hashlib.sha256("\0".join(identity).encode(errors="replace")).hexdigest()


def _uri(path: str) -> str:
    uri = urllib.parse.quote(os.fsencode(path))
    return f"file://{uri}" if path.startswith("/") else uri
