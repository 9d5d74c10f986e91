"""The published formats, as far as they are written: every other key or element is a mistake.

Written after the OASIS schema of SARIF 2.1.0, schemas/result-v1.schema.json of Classroom 50, the
output format in Gradescope's autograder specifications, and junit-10.xsd of Jenkins.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

from jsonschema import Draft202012Validator

LEVELS = {"enum": ["none", "note", "warning", "error"]}
TEXT = {"type": "string", "minLength": 1}
INSTANT = {"type": "string",
           "pattern": r"^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"}
COUNT = {"type": "integer", "minimum": 0}


def exactly(required: dict, optional: dict | None = None) -> dict:
    return {"type": "object", "additionalProperties": False, "required": list(required),
            "properties": required | (optional or {})}


def array(items: dict, **more: object) -> dict:
    return {"type": "array", "items": items, **more}


MESSAGE = exactly({"text": TEXT})
TAGS = array({"type": "string"}, uniqueItems=True)
LOCATION = exactly({"physicalLocation": exactly({
    "artifactLocation": exactly({"uri": {"type": "string", "pattern": r"^[\x21-\x7e]+$"}}),
    "region": exactly({"startLine": {"type": "integer", "minimum": 1},
                       "startColumn": {"type": "integer", "minimum": 1}})})})
SARIF = exactly({
    "$schema": {"type": "string", "format": "uri"},
    "version": {"const": "2.1.0"},
    "runs": array(exactly({
        "tool": exactly({"driver": exactly({
            "name": TEXT, "version": TEXT,
            "rules": array(exactly(
                {"id": TEXT}, {"name": TEXT, "shortDescription": MESSAGE,
                               "fullDescription": MESSAGE, "help": MESSAGE}), uniqueItems=True)})}),
        "automationDetails": exactly({"id": TEXT}),
        "invocations": array(exactly({
            "executionSuccessful": {"type": "boolean"},
            "toolExecutionNotifications": array(exactly({"level": LEVELS, "message": MESSAGE}))})),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": array(exactly({
            "ruleId": TEXT, "ruleIndex": {"type": "integer", "minimum": -1}, "level": LEVELS,
            "message": MESSAGE, "locations": array(LOCATION, uniqueItems=True),
            "partialFingerprints": {"type": "object", "additionalProperties": TEXT},
            "properties": {"type": "object"}})),
        "properties": {"type": "object"}}), minItems=1, maxItems=1)})

VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
NUMBER = {"type": "number", "minimum": 0}
GRADESCOPE = exactly(
    {"score": NUMBER, "tests": array(exactly({"name": TEXT}, {
        "score": NUMBER, "max_score": NUMBER, "status": {"enum": ["passed", "failed"]},
        "number": {"type": "string", "pattern": r"^\d+(\.\d+)?$"}, "output": TEXT,
        "output_format": FORMAT, "tags": TAGS, "visibility": VISIBILITY,
        "extra_data": {"type": "object"}}))},
    {"execution_time": NUMBER, "output": TEXT, "output_format": FORMAT, "visibility": VISIBILITY,
     "stdout_visibility": VISIBILITY, "extra_data": {"type": "object"},
     "leaderboard": array(exactly({"name": TEXT, "value": {"type": ["number", "string"]}},
                                  {"order": {"enum": ["asc", "desc"]}}))})

CLASSROOM50 = exactly(
    {"schema": {"const": "classroom50/result/v1"}, "classroom": TEXT, "assignment": TEXT,
     "assignment_type": {"enum": ["individual", "group", "team"]}, "owner": TEXT,
     "submission": {"type": "string", "pattern": "^submit/"}, "commit": TEXT, "release": TEXT,
     "review": TEXT, "datetime": INSTANT, "score": COUNT, "max-score": COUNT,
     "tests": array({"type": "object", "required": ["test-name", "passed", "score", "max-score"],
                     "properties": {"test-name": TEXT, "passed": {"type": "boolean"},
                                    "score": COUNT, "max-score": COUNT}})},
    {"graded_at": INSTANT})

# element -> its required and optional attributes, and its children
TIME = r"\d{0,9}(\.\d{0,3})?"
SAYS = ((), ("message", "type"), ())
JUNIT = {
    "testsuites": ((), ("name", "time", "tests", "failures", "errors"), ("testsuite",)),
    "testsuite": (("name", "tests", "failures", "errors"),
                  ("time", "skipped", "timestamp", "hostname"),
                  ("properties", "testcase", "system-out", "system-err")),
    "properties": ((), (), ("property",)),
    "property": (("name", "value"), (), ()),
    "testcase": (("name",), ("classname", "time"), ("skipped", "error", "failure")),
    "failure": SAYS, "error": SAYS, "skipped": SAYS,
    "system-out": ((), (), ()), "system-err": ((), (), ()),
}


def valid_json(schema: dict, text: str) -> dict:
    """Returns the data of a text that a schema allows."""
    data = json.loads(text)
    Draft202012Validator.check_schema(schema)
    assert [f"{e.json_path}: {e.message}" for e in Draft202012Validator(schema).iter_errors(data)
            ] == []
    return data


def valid_sarif(text: str) -> dict:
    """Returns the run of a log."""
    run = valid_json(SARIF, text)["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run


def valid_gradescope(text: str) -> dict:
    """Returns results whose tests have at most their maximum."""
    data = valid_json(GRADESCOPE, text)
    assert all(test.get("score", 0) <= test.get("max_score", 0) for test in data["tests"])
    return data


def valid_classroom50(text: str) -> dict:
    """Returns a result whose maximum is the sum over its tests."""
    data = valid_json(CLASSROOM50, text)
    assert data["score"] <= data["max-score"] == sum(test["max-score"] for test in data["tests"])
    assert all(test["score"] <= test["max-score"] for test in data["tests"])
    return data


def valid_junit(text: str) -> ET.Element:
    """Returns the root of a file whose counts are right."""
    root = ET.fromstring(text)
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, children = JUNIT[element.tag]
        assert set(required) <= set(element.attrib) <= {*required, *optional}, element.tag
        assert {child.tag for child in element} <= set(children), element.tag
        assert re.fullmatch(TIME, element.get("time", ""))
        if element.tag == "testsuite":
            cases = element.findall("testcase")
            assert int(element.get("tests", "")) == len(cases)
            for tag, count in (("failure", "failures"), ("error", "errors"),
                               ("skipped", "skipped")):
                assert int(element.get(count, "")) == sum(c.find(tag) is not None for c in cases)
    return root
