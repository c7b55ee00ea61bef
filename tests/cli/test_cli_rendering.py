"""Findings and failures as text, as JSON, for GitHub and as SARIF."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from weft.cli.codes import CODES
from weft.cli.commands.check import AppliedFix, Report
from weft.cli.failure import Exit, Failure
from weft.cli.pages.findings import (
    concise,
    failure_text,
    full,
    github,
)
from weft.cli.pages.sarif import sarif
from weft.cli.results import Result, document, failure_data
from weft.cli.streams import colored, plain
from weft.findings import (
    AppendItem,
    Edit,
    Finding,
    Fix,
    Place,
    Remove,
    RenameKey,
    SetValue,
)
from weft.wire.findings import finding_data

FIX = Fix("add it", (Remove(("agents", 0)),))
ERROR = Finding(
    "SCHEMA008",
    "error",
    'unknown key "nmae"',
    Place("workflows/S/agents.json", 2, 5, length=6),
    cause=("the file says so",),
    hint=('did you mean "name"?', "or remove it", "a third hint"),
    fix=FIX,
)
WARNING = Finding("SCHEMA013", "warning", "agent.json is not read", Place("workflows/S/agent.json"))


def test_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "workflows" / "S" / "agents.json"
    file.parent.mkdir(parents=True)
    file.write_text('{\n    "nmae": 1\n}\n')
    assert full([ERROR, WARNING], plain).splitlines() == [
        'error[SCHEMA008]: unknown key "nmae"',
        "  --> workflows/S/agents.json:2:5",
        "  |",
        '2 |     "nmae": 1',
        "  |     ^^^^^^",
        "  cause: the file says so",
        "  hint:  run `weft check --fix` to add it      [*] safe fix",
        '  hint:  did you mean "name"?',
        "  more:  weft explain SCHEMA008",
        "",
        "warning[SCHEMA013]: agent.json is not read",
        "  --> workflows/S/agent.json",
        "  more:  weft explain SCHEMA013",
    ]


def test_concise():
    assert concise([ERROR, WARNING], plain).splitlines() == [
        'workflows/S/agents.json:2:5: error[SCHEMA008]: unknown key "nmae" [*]',
        "workflows/S/agent.json: warning[SCHEMA013]: agent.json is not read",
    ]


def test_a_message_stays_on_one_line_and_cannot_steer_the_terminal():
    nasty = Finding("SCHEMA008", "error", "a\nb\x1b[2Jc\u202ed", Place("f"))
    assert concise([nasty], plain) == r"f: error[SCHEMA008]: a\nb\x1b[2Jc\u202ed"


def test_color_is_there_when_asked_for():
    assert "\x1b[1;31merror[SCHEMA008]\x1b[0m" in concise([ERROR], colored)


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (Report((), (), 8, 1, 0.187), "No findings in 8 files of 1 package (0.19 s)."),
        (Report((), (), 1, 2, 0.0), "No findings in 1 file of 2 packages (0.00 s)."),
        (Report((ERROR,), (), 8, 1, 0.187), "Found 1 error in 8 files (0.19 s). 1 fixable."),
        (Report((WARNING, WARNING), (), 8, 1, 1), "Found 2 warnings in 8 files (1.00 s)."),
        (
            Report((ERROR, ERROR, WARNING), (), 8, 1, 0.187),
            "Found 2 errors, 1 warning in 8 files (0.19 s). 2 fixable.",
        ),
    ],
)
def test_summary(report: Report, line: str):
    assert report.summary() == line


def test_failure_with_findings_and_at_most_two_hints():
    failure = Failure(
        Exit.FAILED, "it cannot be drawn", ("a cause",), ("one", "two", "three"), (WARNING,)
    )
    assert failure_text(failure, plain).splitlines() == [
        "warning[SCHEMA013]: agent.json is not read",
        "  --> workflows/S/agent.json",
        "  more:  weft explain SCHEMA013",
        "",
        "error[CLI001]: it cannot be drawn",
        "  cause: a cause",
        "  hint:  one",
        "  hint:  two",
        "  more:  weft explain CLI001",
    ]


def test_failure_names_the_page_that_tells_more():
    failure = Failure(Exit.USAGE, "what?", more="weft check --help")
    assert failure_text(failure, plain).endswith("  more:  weft check --help")


def test_report_document():
    report = Report((ERROR, WARNING), (AppliedFix("f", "t"),), 8, 1, 0.18749)
    data = json.loads(document(Result(report.data()).content()))
    assert data["schema_version"] == 1
    assert data["summary"] == {
        "errors": 1,
        "warnings": 1,
        "fixable": 1,
        "files": 8,
        "packages": 1,
        "seconds": 0.187,
    }
    assert data["fixed"] == [{"file": "f", "title": "t"}]
    assert data["findings"][0] == {
        "code": "SCHEMA008",
        "severity": "error",
        "message": 'unknown key "nmae"',
        "file": "workflows/S/agents.json",
        "line": 2,
        "column": 5,
        "length": 6,
        "cause": ["the file says so"],
        "hint": ['did you mean "name"?', "or remove it", "a third hint"],
        "fix": {
            "title": "add it",
            "file": None,
            "edits": [{"kind": "remove", "path": ["agents", 0], "value": None}],
        },
    }
    assert data["findings"][1]["line"] is None
    assert data["findings"][1]["fix"] is None


@pytest.mark.parametrize(
    ("edit", "data"),
    [
        (SetValue(("a", 0), [1]), {"kind": "set", "path": ["a", 0], "value": [1]}),
        (AppendItem(("a",), "x"), {"kind": "append", "path": ["a"], "value": "x"}),
        (RenameKey(("a",), "b"), {"kind": "rename", "path": ["a"], "value": "b"}),
        (Remove(("a",)), {"kind": "remove", "path": ["a"], "value": None}),
    ],
)
def test_every_edit_of_a_fix_is_given_as_data(edit: Edit, data: dict[str, object]):
    fix = finding_data(replace(ERROR, fix=Fix("t", (edit, edit), file="agents.json")))["fix"]
    assert fix == {"title": "t", "file": "agents.json", "edits": [data, data]}
    assert json.loads(json.dumps(fix)) == fix


def test_failure_document():
    failure = Failure(Exit.NOT_FOUND, "no", ("c",), ("h",), (WARNING,))
    data = json.loads(document({"error": failure_data(failure)}))
    assert data["schema_version"] == 1
    assert list(data["error"]) == ["code", "message", "cause", "hint", "findings"]
    assert data["error"]["code"] == "CLI006"
    assert data["error"]["findings"][0]["code"] == "SCHEMA013"


def test_github_escapes_what_it_would_misread():
    odd = Finding(
        "SCHEMA008", "error", "50% of\nit, a: b", Place("a,b:c%.json", 3, 4), hint=("mend it",)
    )
    assert github(odd) == (
        "::error file=a%2Cb%3Ac%25.json,line=3,col=4,title=SCHEMA008::50%25 of%0Ait, a: b%0Amend it"
    )


def test_github_leaves_out_what_is_not_known():
    assert github(WARNING) == (
        "::warning file=workflows/S/agent.json,title=SCHEMA013::agent.json is not read"
    )


def test_sarif_has_what_the_standard_requires():
    log = json.loads(sarif((ERROR, WARNING, ERROR), ()))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "weft"
    assert [rule["id"] for rule in driver["rules"]] == ["SCHEMA008", "SCHEMA013"]
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"] == CODES[rule["id"]].title
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning"}
    assert len(run["results"]) == 3
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning"}
        assert result["message"]["text"]
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "workflows/S/agents.json"}
    assert physical["region"] == {"startLine": 2, "startColumn": 5, "endColumn": 11}
    assert "region" not in run["results"][1]["locations"][0]["physicalLocation"]


def test_sarif_without_findings_is_still_a_log():
    assert json.loads(sarif((), ()))["runs"][0]["results"] == []


def test_sarif_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def uri(file: object, line: int | None = None) -> str:
        finding = Finding("SCHEMA008", "error", "m", Place(str(file), line))
        (result,) = json.loads(sarif((finding,), ()))["runs"][0]["results"]
        return result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]

    assert uri("a b/ü.json") == "a%20b/%C3%BC.json"
    assert uri(tmp_path / "here" / "a.json") == "a.json"
    assert uri(os.fsdecode(b"odd\xff.json")) == "odd%FF.json"
    assert uri(tmp_path / "there.json") == (tmp_path / "there.json").as_uri()


def test_sarif_region_without_column():
    finding = Finding("SCHEMA008", "error", "m", Place("f", 3))
    (result,) = json.loads(sarif((finding,), ()))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}
