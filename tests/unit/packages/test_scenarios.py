"""Scenarios are read with the package, strictly, and are no part of what runs."""

import shutil

import pytest

from weft.errors import CheckFailed
from weft.packages.archive.exporting import export_package
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors, review, review_package
from weft.packages.scenarios import read_scenarios, scenario_text
from weft.packages.workspace import shipped_folder
from weft.spec.scenario import Scenario


@pytest.fixture
def folder(tmp_path):
    """A copy of the support router without scenarios."""
    copy = tmp_path / "CustomerSupportRouter"
    shutil.copytree(shipped_folder() / copy.name, copy, ignore=shutil.ignore_patterns("tests"))
    return copy


def findings(folder, text, name="case.yaml"):
    """Return the findings of a scenario: code, place in the file, message and hints."""
    path = folder / "tests" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    found = review_package(read_package(folder))
    assert {each.place.file for each in found} <= {str(path)}
    return [
        (
            each.code,
            each.severity,
            f"{each.place.line}:{each.place.column}",
            each.message,
            each.hint,
        )
        for each in found
    ]


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ("mesage: hello", "SCHEMA008", "1:1", 'unknown key "mesage" / did you mean "message"?'),
        ("steps:\n  - {say: a, wait: 1}", "SCHEMA014", "2:20", '"say" and "wait" exclude'),
        ("steps: [{}]", "SCHEMA014", "1:9", '"say", "answer", "cancel", "wait" or "stop"'),
        ("steps: [{say: a, value: 1}]", "SCHEMA014", "1:25", '"value" has no effect without'),
        ("steps: [{say: a, as: nurse}]", "SCHEMA007", "1:22", "write user:NAME, role:NAME"),
        ("replies: sampel", "SCHEMA007", "1:10", 'not one of sample / did you mean "sample"?'),
        ("replies: [a]", "SCHEMA007", "1:10", "expected sample, or the replies of each agent"),
        ("replies: {RouterAgent: [1]}", "SCHEMA007", "1:25", "expected text, an object, a list"),
        ("replies: {RouterAgent: [[1]]}", "SCHEMA007", "1:26", "expected text, or a tool"),
        ("replies: {RouterAgent: x}", "SCHEMA007", "1:24", 'expected a list, found "x"'),
        ("replies: {Router: [a]}", "NAME001", "1:11", 'unknown agent "Router" / did you mean'),
        ("expect: {route: [RoterAgent]}", "NAME001", "1:18", 'unknown turn "RoterAgent"'),
        ("expect: {variables: {urgent: 1}}", "NAME001", "1:22", "did you mean urgency?"),
        ("expect: {requests: {ask: user}}", "NAME001", "1:21", 'unknown request "ask"'),
        ("expect: {requests: {escalate: boss}}", "SCHEMA007", "1:31", "not an addressee / write"),
        ("expect: {outcome: done}", "SCHEMA007", "1:19", "is not one of completed, failed"),
        ("values: {urgent: high}", "NAME001", "1:10", 'unknown variable "urgent"'),
        ("tools: {look_up: [1]}", "NAME001", "1:9", 'unknown tool "look_up"'),
        ("tools: {escalate: []}", "SCHEMA007", "1:19", "at least 1 in the list"),
        ("then: {then: {expect: {route: [X]}}}", "NAME001", "1:32", 'unknown turn "X"'),
        ("message: [", "SCHEMA002", "1:11", "a value is missing"),
    ],
)  # fmt: skip
def test_mistake_is_a_finding_at_its_place(folder, text, code, place, words):
    [(found, severity, where, message, hint)] = findings(folder, text)
    assert (found, severity, where) == (code, "error", place)
    fact, _, remedy = words.partition(" / ")
    assert fact in message or fact in " ".join(hint)
    assert remedy in " ".join(hint)


def test_scenarios_of_a_damaged_package_name_nothing_unknown(folder):
    (folder / "agents.json").write_text("{")
    codes = [code for code, *_ in findings_of_all(folder, "replies: {Nobody: [a]}")]
    assert "NAME001" not in codes


def findings_of_all(folder, text):
    (folder / "tests").mkdir()
    (folder / "tests" / "case.yml").write_text(text)
    return [(each.code, each.place) for each in review(folder).findings]


def test_only_files_of_the_folder_itself_with_these_endings_are_scenarios(folder):
    (folder / "tests" / "data").mkdir(parents=True)
    for name in ("b.json", "a.yaml", "c.yml", "notes.txt", "test_it.py", "data/x.yaml"):
        (folder / "tests" / name).write_text("{}")
    package = read_package(folder)
    assert [file.path for file in read_scenarios(package)] == [
        "tests/a.yaml", "tests/b.json", "tests/c.yml",
    ]  # fmt: skip
    assert review_package(package) == ()


def test_scenarios_do_not_change_the_digest_and_a_bad_one_does_not_prevent_runs(folder):
    before = read_package(folder).digest
    assert findings(folder, "mesage: hello")
    package = read_package(folder)
    assert package.digest == before
    refuse_errors(package)
    (folder / "agents.json").write_text("{")
    with pytest.raises(CheckFailed):
        refuse_errors(read_package(folder))


def test_scenarios_are_exported(folder, tmp_path):
    findings(folder, "message: hello")
    done = export_package(folder, tmp_path / "x.zip")
    assert "tests/case.yaml" in done.manifest.files


def test_no_fix_is_offered_for_what_none_reaches(folder):
    assert findings(folder, "Message: hello")
    assert [each.fix for each in review_package(read_package(folder))] == [None]


def test_scenarios_know_the_steps_of_a_flow_and_the_types_of_a_board(tmp_path):
    for name, text in {
        "OrderProcessing": "expect: {route: [undo:Ship, Shop, ...], variables: {x: 1}}",
        "NewsDesk": "expect: {variables: {Editon: {}}}",
    }.items():
        folder = tmp_path / name
        shutil.copytree(shipped_folder() / name, folder, ignore=shutil.ignore_patterns("tests"))
        [(code, _, _, _, hint)] = findings(folder, text)
        assert (code, hint[0]) == (
            "NAME001",
            {"OrderProcessing": "did you mean Ship?", "NewsDesk": "did you mean Edition?"}[name],
        )


def test_tools_of_servers_are_not_known_before_a_run(folder):
    file = folder / "tools.json"
    servers = '"mcp_servers": [{"name": "shop", "url": "https://shop.example/mcp"}],'
    file.write_text(file.read_text().replace('"tools": [', f'{servers} "tools": [', 1))
    assert findings(folder, "{tools: {shop_find: [1]}}") == []


def test_scenario_is_written_as_it_is_read(folder):
    scenario = Scenario(
        description="It answers.",
        message="hello",
        replies={"RouterAgent": ("Hi", [{"escalate": {}}])},
    )
    text = scenario_text(scenario, "One line.")
    assert text.splitlines()[1] == "# One line."
    assert findings(folder, text) == []
    [file] = read_scenarios(read_package(folder))
    assert (file.name, file.errors, file.scenario) == ("case", (), scenario)
