"""weft check: what it reads, reports, mends and exits with."""

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest

from support.cases import read_cases, scenario_tests
from weft.cli.commands import check
from weft.cli.commands.check import watch_folders
from weft.cli.pages.sarif import sarif
from weft.findings import AppendItem, Finding, Fix, Place, SetValue
from weft.packages.edit import fixes
from weft.packages.review import Review

CASES = read_cases(__file__)


@pytest.fixture
def misspelt(support, write):
    """One error with a safe fix: a key in another spelling."""
    write(
        support,
        "orchestrator.json",
        '{\n  "workflow_name": "Support",\n  "initial_agent": "Helper",\n  "Max-Turns": 10\n}\n',
    )
    return support


def annotate(folder: Path) -> None:
    """Cause one warning without a fix: JSON with a comment."""
    file = folder / "agents.json"
    file.write_text(f"{file.read_text()}\n// a note\n")


@pytest.fixture
def warned(support):
    """One warning, in another file than the error of `misspelt`."""
    annotate(support)
    return support


@pytest.fixture
def guarded(workspace, make_package):
    """Nothing is wrong, but a loop guard is declared, which no run performs."""
    return make_package(workspace / "workflows" / "Support", loop_guard={})


REFUSED = "Support declares loop_guard, which this version of Weft does not perform"


def test_unsupported_features_as_data(weft, guarded):
    result = weft("check", "--json")
    assert result.code == 1
    (finding,) = result.data["findings"]
    assert (finding["code"], finding["message"]) == ("LINK003", REFUSED)
    assert finding["file"] == "workflows/Support/orchestrator.json"
    assert (
        "loop_guard"
        in (guarded / "orchestrator.json").read_text().splitlines()[finding["line"] - 1]
    )
    assert finding["hint"] == ["take it out, or wait for a version that performs it"]


def test_an_error_exits_1_and_is_shown_with_its_place(weft, misspelt):
    result = weft("check")
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0].startswith("error[SCHEMA008]: ")
    assert lines[1] == "  --> workflows/Support/orchestrator.json:4:3"
    assert lines[3] == '4 |   "Max-Turns": 10'
    assert lines[4] == "  |   ^^^^^^^^^^^"
    assert "  more:  weft explain SCHEMA008" in lines
    assert lines[-1].startswith("Found 1 error in 2 files (")
    assert lines[-1].endswith("). 1 fixable.")


def test_verbose_names_every_package(weft, workspace):
    result = weft("check", "-v")
    first, second = result.err.splitlines()
    assert first == f"workspace: {workspace}"
    assert second.startswith("checked workflows/Support: Support ")
    file = workspace / "workflows" / "Support" / "orchestrator.json"
    described = {**json.loads(file.read_text()), "description": "Helps\n customers."}
    file.write_text(json.dumps(described))
    assert weft("check", "-v").err.endswith(": Helps customers.\n")


def test_verbose_lists_what_a_server_mounts(weft, workspace, make_package):
    extensions = [
        {"kind": "api_router", "entrypoint": "tools.api:get_router", "prefix": "orders"},
        {"kind": "startup_service", "entrypoint": "tools.api:watch"},
    ]
    folder = make_package(workspace / "workflows" / "Support", runtime_extensions=extensions)
    (folder / "tools").mkdir()
    (folder / "tools" / "api.py").write_text("def get_router(): ...\ndef watch(): ...\n")
    result = weft("check", "-v")
    assert result.code == 0
    assert result.err.splitlines()[-2:] == [
        "  api_router tools.api:get_router under orders",
        "  startup_service tools.api:watch",
    ]


@pytest.mark.parametrize(
    "place",
    [
        "Support",
        "workflows/Support",
        "workflows",
        ".",
        "workflows/Support/agents.json",
    ],
)
def test_places_may_be_named_in_many_ways(weft, misspelt, place: str):
    result = weft("check", place, "--format", "concise")
    assert result.code == 1
    assert result.out.startswith("workflows/Support/orchestrator.json:4:3: error[SCHEMA008]: ")
    assert result.out.splitlines()[0].endswith(" [*]")


def test_a_file_outside_of_the_current_folder_leads_to_its_package(
    weft, misspelt, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path / "workflows")
    result = weft("check", "Support/agents.json", "--format", "concise")
    assert result.out.startswith("Support/orchestrator.json:4:3: ")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = weft("check", misspelt / "agents.json", "--format", "concise")
    assert result.out.startswith(f"{misspelt}/orchestrator.json:4:3: ")


def test_places_that_overlap_tell_a_finding_once(weft, misspelt):
    result = weft("check", ".", "Support", "workflows/Support", "--json")
    assert len(result.data["findings"]) == 1


def test_the_workspace_is_found_upward(weft, misspelt, monkeypatch):
    monkeypatch.chdir(misspelt)
    result = weft("check", "--format", "concise")
    assert result.out.startswith("../../workflows/Support/orchestrator.json:4:3: ")


@pytest.mark.parametrize("before", [True, False])
def test_the_workspace_option_stands_before_or_after_the_verb(weft, misspelt, tmp_path, before):
    option = ["--workspace", str(tmp_path)]
    words = [*option, "check", "Support"] if before else ["check", "Support", *option]
    assert weft(*words).code == 1


def test_a_workspace_that_is_not_there(weft, tmp_path):
    result = weft("check", "--workspace", tmp_path / "nowhere")
    assert result.code == 6
    assert "is not a folder" in result.err
    assert f"weft init {tmp_path / 'nowhere'}" in result.err


def test_a_name_that_is_not_there_gets_a_suggestion(weft, workspace):
    result = weft("check", "Suport")
    assert result.code == 6
    assert result.err.splitlines() == [
        'error[CLI006]: there is no package "Suport" in the current folder',
        "  hint:  did you mean Support?",
        "  more:  weft explain CLI006",
    ]


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"]])
def test_json(weft, misspelt, words: list[str]):
    result = weft("check", *words)
    assert result.code == 1
    assert result.err == ""
    assert result.data["schema_version"] == 1
    assert [finding["code"] for finding in result.data["findings"]] == ["SCHEMA008"]
    assert result.data["summary"]["packages"] == 1


def test_github(weft, misspelt):
    result = weft("check", "--format", "github")
    assert result.code == 1
    assert result.out.startswith(
        "::error file=workflows/Support/orchestrator.json,line=4,col=3,title=SCHEMA008::"
    )
    assert len(result.out.splitlines()) == 1


def test_sarif(weft, misspelt):
    result = weft("check", "--format", "sarif")
    assert result.code == 1
    assert json.loads(result.out)["runs"][0]["results"][0]["ruleId"] == "SCHEMA008"


@pytest.mark.parametrize(("words", "codes"), CASES["test_select_and_ignore"])
def test_select_and_ignore(weft, misspelt, warned, words: list[str], codes: list[str]):
    result = weft("check", "--json", *words)
    assert [finding["code"] for finding in result.data["findings"]] == codes
    assert result.code == (1 if "SCHEMA008" in codes else 0)


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("SCHMA", "did you mean SCHEMA?"),
        ("NAME1", "did you mean NAME001?"),
        ("", "list all codes: weft explain"),
    ],
)
def test_an_unknown_code_is_refused(weft, workspace, option: str, typed: str, hint: str):
    result = weft("check", f"{option}={typed}")
    assert result.code == 2
    assert f'invalid value "{typed}" for {option}' in result.err
    assert hint in result.err


def test_fix_mends_says_so_and_reports_what_is_left(weft, misspelt, warned):
    result = weft("check", "--fix")
    assert result.code == 0
    lines = result.out.splitlines()
    file = "workflows/Support/orchestrator.json"
    assert lines[0] == f'fixed {file}: rename the key to "max_turns"'
    assert lines[1].startswith("warning[SCHEMA006]")
    assert json.loads((misspelt / "orchestrator.json").read_text())["max_turns"] == 10
    assert weft("check", "--fix").out.startswith("warning[SCHEMA006]")


def test_fix_mends_several_in_one_file(weft, support, write):
    text = '{"workflow-name": "Support", "initialAgent": "Helper", "MAX_TURNS": 10}'
    write(support, "orchestrator.json", text)
    result = weft("check", "--fix", "--json")
    assert result.code == 0
    assert len(result.data["fixed"]) == 3
    assert result.data["findings"] == []


def test_fix_leaves_alone_what_is_not_selected(weft, misspelt):
    before = (misspelt / "orchestrator.json").read_text()
    assert weft("check", "--fix", "--ignore", "SCHEMA008").code == 0
    assert (misspelt / "orchestrator.json").read_text() == before


def test_fix_ends_when_two_fixes_undo_each_other(weft, support, monkeypatch):
    def quarrel(package, *, profile, kinds, suppressed):
        turns = 20 if package.spec.orchestrator.max_turns == 10 else 10
        fix = Fix("change it", (SetValue(("orchestrator", "max_turns"), turns),))
        return (Finding("SCHEMA008", "error", "m", Place("f"), fix=fix),)

    monkeypatch.setattr(check, "review_package", quarrel)
    result = weft("check", "--fix", "--json")
    assert result.code == 0
    changed = {"file": "workflows/Support/orchestrator.json", "title": "change it"}
    assert result.data["fixed"] == [changed, changed]


def test_fix_has_an_end_in_any_case(weft, support, monkeypatch):
    def never_content(package, *, profile, kinds, suppressed):
        turns = package.spec.orchestrator.max_turns + 1
        fix = Fix("change it", (SetValue(("orchestrator", "max_turns"), turns),))
        return (Finding("SCHEMA008", "error", "m", Place("f"), fix=fix),)

    monkeypatch.setattr(check, "review_package", never_content)
    monkeypatch.setattr(fixes, "MAX_ROUNDS", 7)
    assert len(weft("check", "--fix", "--json").data["fixed"]) == 7


def test_profile_reaches_the_rules(weft, workspace, monkeypatch):
    asked: list[str] = []

    def review(path, *, profile, kinds, suppressed, on_package, is_installed, model_providers):
        asked.append(profile)
        return Review((), (), 0)

    monkeypatch.setattr(check, "review", review)
    weft("check")
    weft("check", "--profile", "production")
    monkeypatch.setenv("ENVIRONMENT", "Production")
    weft("check")
    weft("check", "--profile", "development")
    assert asked == ["development", "production", "production", "development"]


def test_profile_production_turns_a_suppressed_variable_into_an_error(weft, support, write):
    """DESIGN.md 9g: rules on variables that production suppresses."""
    write(
        support,
        "context_variables.json",
        {
            "context_variables": {
                "definitions": {
                    "beta": {
                        "type": "bool",
                        "description": "Whether the beta is on.",
                        "source": {"type": "environment", "env_var": "BETA", "default": False},
                    }
                },
                "agents": {},
            }
        },
    )
    handoffs = [
        {"source_agent": "Helper", "target_agent": "terminate", "condition": "beta"},
        {"source_agent": "Helper", "target_agent": "user"},
    ]
    write(support, "handoffs.json", {"handoff_rules": handoffs})

    def severities(*words: str) -> list[str]:
        data = weft("check", "--select", "ENV", "--json", *words).data
        return [finding["severity"] for finding in data["findings"]]

    assert severities() == ["warning"]
    assert severities("--profile", "production") == ["error"]


def test_watch_checks_again_after_every_change(weft, support, monkeypatch):
    def changes(*folders):
        assert folders == (Path(),)
        annotate(support)
        yield {"one change"}
        (support / "agents.json").unlink()
        (support / "orchestrator.json").unlink()
        yield {"another"}
        raise KeyboardInterrupt

    monkeypatch.setattr("watchfiles.watch", changes)
    result = weft("check", "--watch", "--format", "concise")
    assert result.code == 130
    first, second, *rest = result.out.splitlines()
    assert first.startswith("No findings")
    assert "SCHEMA006" in second
    assert rest[0].startswith("Found 1 warning")
    assert "there is no package in the current folder" in result.err
    assert result.err.count("Watching for changes.") == 3


def test_watch_needs_its_optional_part(monkeypatch, weft, workspace):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    result = weft("check", "--watch")
    assert result.code == 3
    assert "  hint:  install it: pip install watchfiles\n" in result.err


def test_watch_ends_by_itself_when_there_is_nothing_more_to_watch(monkeypatch, weft, workspace):
    monkeypatch.setattr("watchfiles.watch", lambda *_: iter([]))
    assert weft("check", "--watch").code == 0


def test_watching_is_real(tmp_path):
    """The library is asked in the way it wants to be asked."""
    seen = threading.Event()

    def change_until_seen() -> None:
        number = 0
        while not seen.wait(0.1):
            number += 1
            (tmp_path / "f").write_text(str(number))

    def again() -> None:
        seen.set()
        raise KeyboardInterrupt

    author = threading.Thread(target=change_until_seen)
    author.start()
    with pytest.raises(KeyboardInterrupt):
        watch_folders([tmp_path], again)
    author.join()


def test_missing_package_names_packages_elsewhere(weft, workspace, support):
    support.rename(workspace / "Support")
    result = weft("check")
    assert result.code == 6
    assert "Support was not checked" in result.err
    assert "there is no package in the current folder" in result.err


def test_a_folder_of_misnamed_files_is_not_lost(weft, workspace, write):
    write(workspace / "workflows" / "Empty", "agent.yaml", "")
    result = weft("check", "Empty")
    assert result.code == 1
    assert "if this is agent.yaml, rename it" in result.out


def applied(fix, folder):
    """Carry out a fix of a SARIF log as a program that reads one would."""
    for change in fix["artifactChanges"]:
        file = folder / change["artifactLocation"]["uri"]
        text = file.read_text()
        lines = text.splitlines(keepends=True)
        for replacement in change["replacements"]:
            region = replacement["deletedRegion"]
            start = sum(map(len, lines[: region["startLine"] - 1])) + region["startColumn"] - 1
            end = sum(map(len, lines[: region["endLine"] - 1])) + region["endColumn"] - 1
            file.write_text(text[:start] + replacement["insertedContent"]["text"] + text[end:])


def test_sarif_carries_the_safe_fixes(weft, workspace, misspelt):
    results = weft("check", "--format", "sarif").data["runs"][0]["results"]
    (fixable,) = [result for result in results if "fixes" in result]
    (fix,) = fixable["fixes"]
    assert fix["description"]["text"] == 'rename the key to "max_turns"'
    assert fix["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "max_t"}
    copy = workspace / "copy"
    shutil.copytree(workspace / "workflows", copy / "workflows")
    applied(fix, copy)
    weft("check", "--fix", "--select", "SCHEMA008")
    name = "workflows/Support/orchestrator.json"
    assert (copy / name).read_text() == (workspace / name).read_text()


def test_sarif_does_not_tell_a_new_file_as_a_change(support):
    fix = Fix("show it", (AppendItem(("exposure", "Helper"), "tier"),))
    finding = Finding("EXPO002", "error", "m", Place(str(support / "agents.json")), fix=fix)
    (result,) = json.loads(sarif((finding,), (support,)))["runs"][0]["results"]
    assert "fixes" not in result


def test_a_key_in_two_spellings_is_not_mended(weft, support, make_package):
    make_package(support, maxTurns=3)
    before = (support / "orchestrator.json").read_text()
    result = weft("check", "--fix")
    assert (result.code, result.err) == (1, "")
    assert 'hint:  "max_turns" is there as well: keep one of the two\n' in result.out
    assert (support / "orchestrator.json").read_text() == before


def test_fix_takes_the_declared_name_of_an_agent(weft, support, make_package, write):
    make_package(support, initial_agent="helper", human_in_the_loop=True)
    rules = [{"source_agent": "HELPER", "target_agent": "user"}]
    write(support, "handoffs.json", {"handoff_rules": rules})
    declared = (support / "agents.json").read_text()
    result = weft("check", "--fix")
    assert result.code == 0
    assert result.out.count("fixed ") == 2
    assert (support / "agents.json").read_text() == declared
    assert json.loads((support / "orchestrator.json").read_text())["initial_agent"] == "Helper"
    (rule,) = json.loads((support / "handoffs.json").read_text())["handoff_rules"]
    assert rule["source_agent"] == "Helper"


def test_long_work_is_reported_at_a_terminal(weft, workspace, make_package, monkeypatch):
    make_package(workspace / "workflows" / "Other")
    monkeypatch.setattr(check, "PROGRESS_SECONDS", 0.0)
    assert "packages checked" not in weft("check").err
    monkeypatch.setattr(check.sys.stderr, "isatty", lambda: True)
    result = weft("check", "--no-color")
    assert result.err == "packages checked: 1 of 2\npackages checked: 2 of 2\n"
    assert weft("check", "--quiet").err == weft("check", "--json").err == ""
    monkeypatch.setattr(check, "PROGRESS_SECONDS", 60.0)
    assert weft("check").err == ""


test_scenarios = scenario_tests(__file__)
