"""Seed 000, lines 64-70, 179-214 and 388-394: where values come from, what is gated and logged."""

import json
import logging

import pytest

from seeds.seed_play import (
    NAME,
    agents,
    database,
    derived,
    desk,
    environment,
    errors,
    findings,
    handoffs,
    play,
    says,
    static,
    variables,
)
from support.cases import read_cases
from support.run_play import linked
from weft.engine.events import ContextFetched, ToolFailed, ToolReturned
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.packages.reader import read_package
from weft.testing.models import call

CASES = read_cases(__file__)

DATABASE = "autogen_ai_agents"


def package(definitions, *exposure, **files):
    """Return a package of one agent that is shown some of its variables."""
    listed = variables(definitions, {"Talker": exposure} if exposure else None)
    ends = handoffs(("Talker", "terminate"))
    return {"agents": agents("Talker"), "handoffs": ends, "context_variables": listed, **files}


def shown(played, number=0):
    """Return the variables that stand in a prompt, with their values."""
    lines = played.prompt("Talker", number).partition("[CONTEXT VARIABLES]\n")[2].splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_every_value_follows_from_the_declaration_and_what_was_observed(tmp_path):
    """Lines 64-65, 109: the journal alone gives the same values and the same prompts again."""
    definitions = {
        "tier": static("beta"),
        "plan": database("Concepts", field="Plan"),
        "aware": environment("CONTEXT_AWARE", default=True),
        "complete": derived(False, says("Talker", "NEXT")),
    }
    files = package(definitions, *definitions)
    stored = [("Concepts", DATABASE, {"Plan": "gold"})]
    played = play(tmp_path, files, ["NEXT"], documents=stored)
    (tmp_path / ".weft" / "documents.db").unlink()
    read_ = read_package(tmp_path / "workflows" / NAME)
    workflow = linked(read_.spec, read_.code)
    assert check_replay(workflow, played.row.run, played.events) == []
    broken = [
        event._replace(data=ContextFetched({}, {})) if event.seq == 4 else event
        for event in played.events
    ]
    assert check_replay(workflow, played.row.run, broken), "another journal is another run"


def test_each_piece_of_state_appears_exactly_once(tmp_path):
    """Line 68: two declarations of one name are refused."""
    twice = '{"context_variables": {"definitions": {"tier": %s, "tier": %s}}}'
    text = twice % (json.dumps(static("beta")), json.dumps(static("final")))
    said = errors(tmp_path, {**package({}), "context_variables": text})
    assert [code for code, _ in said] == ["SCHEMA003"]
    both = variables({"tier": static("beta")})
    both["context_variables"]["static_variables"] = [{"name": "tier", "value": "final"}]
    assert errors(tmp_path, {**package({}), "context_variables": both})


def test_the_minimal_base_holds_who_the_run_is_for_and_which_workflow_it_is(tmp_path):
    """Lines 181-182; decisions h and p: without a declaration, and under both words."""
    base = ("enterprise_id", "app_id", "user_id", "workflow_name")
    files = package({}, *base, **desk("look", agent="Talker"))
    for environ in ({}, {"ENVIRONMENT": "production"}):
        script = [call("look", name="enterprise_id"), "Hi."]
        played = play(tmp_path, files, script, environment=environ)
        assert shown(played) == dict(zip(base, ("acme", "acme", "ada", "Desk"), strict=True))
        assert played.of(ToolReturned)[0].value == {"found": "acme"}


def test_the_two_flags_are_seeded_from_the_environment_unless_in_production(tmp_path):
    """Lines 182-184; decision h: they are ordinary declarations."""
    flags = {
        "context_aware": environment("CONTEXT_AWARE", default=True),
        "monetization_enabled": environment("MONETIZATION_ENABLED", default=False),
    }
    settings = {"CONTEXT_AWARE": "0", "MONETIZATION_ENABLED": "1"}
    files = package(flags, *flags)
    assert play(tmp_path, files, ["Hi."], environment=settings).start == {
        "context_aware": False,
        "monetization_enabled": True,
    }
    production = {**settings, "ENVIRONMENT": "production"}
    assert play(tmp_path, files, ["Hi."], environment=production).start == {}
    assert errors(tmp_path, package({}, *flags))[0][0] == "NAME001", "nothing is baked in"


def test_unknown_legacy_keys_produce_a_warning_and_are_ignored(tmp_path):
    """Lines 188, 392."""
    listed = variables({"tier": static("beta")}, {"Talker": ["tier"]})
    listed["context_variables"]["variables"] = {"limit": {"type": "integer", "default": 3}}
    files = {**package({}), "context_variables": listed}
    said = [finding for finding in findings(tmp_path, files) if finding.code == "SCHEMA010"]
    assert [(finding.severity, finding.message) for finding in said] == [
        ("warning", "older spelling: variables has no meaning any more and is not read")
    ]
    played = play(tmp_path, files, ["Hi."])
    assert dict(played.values) == {"tier": "beta"}


@pytest.mark.parametrize("setting", ["0", "false", "No", "OFF"])
def test_database_variables_are_suppressed_if_the_schema_is_not_included(tmp_path, setting, caplog):
    """Lines 194-195: no query, no value, no line in the prompt."""
    caplog.set_level(logging.INFO, "weft.context")
    definitions = {"tier": static("beta"), "plan": database("Concepts", field="Plan")}
    stored = [("Concepts", DATABASE, {"Plan": "gold"})]
    settings = {"CONTEXT_INCLUDE_SCHEMA": setting}
    files = package(definitions, *definitions)
    played = play(tmp_path, files, ["Hi."], documents=stored, environment=settings)
    assert shown(played) == {"tier": "beta"}
    assert not played.of(ContextFetched)
    assert "Desk: suppressed here: plan" in caplog.messages


@pytest.mark.parametrize("setting", [None, "", "1", "true", "YES", "on"])
def test_database_variables_are_there_if_the_schema_is_included(tmp_path, setting):
    """Lines 194-195."""
    settings = {} if setting is None else {"CONTEXT_INCLUDE_SCHEMA": setting}
    files = package({"plan": database("Concepts", field="Plan")}, "plan")
    stored = [("Concepts", DATABASE, {"Plan": "gold"})]
    played = play(tmp_path, files, ["Hi."], documents=stored, environment=settings)
    assert shown(played) == {"plan": "gold"}
    with pytest.raises(UsageError, match="CONTEXT_INCLUDE_SCHEMA must be 1 or 0, not 'maybe'"):
        play(tmp_path, files, ["never asked"], environment={"CONTEXT_INCLUDE_SCHEMA": "maybe"})


@pytest.mark.parametrize(
    ("type_", "text", "value"), CASES["test_environment_values_are_coerced_as_their_type_says"]
)
def test_environment_values_are_coerced_as_their_type_says(tmp_path, type_, text, value):
    """Lines 198-199, 391."""
    files = package({"flag": environment("FLAG", type_=type_)}, "flag")
    found = play(tmp_path, files, ["Hi."], environment={"FLAG": text}).values["flag"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("type_", "text"), [("boolean", "sure"), ("integer", "many")])
def test_coercion_is_restricted_and_does_not_guess(tmp_path, type_, text):
    """Line 391: what is no indicator is refused, and the run does not begin."""
    files = package({"flag": environment("FLAG", type_=type_)}, "flag")
    with pytest.raises(UsageError, match="the environment variable FLAG is invalid for flag"):
        play(tmp_path, files, ["never asked"], environment={"FLAG": text})


def test_defaults_are_applied_when_the_environment_variable_is_unset(tmp_path):
    """Lines 200, 298."""
    definitions = {
        "aware": environment("CONTEXT_AWARE", default=True),
        "limit": environment("LIMIT", default=3, type_="integer"),
    }
    files = package(definitions, *definitions)
    assert play(tmp_path, files, ["Hi."]).start == {"aware": True, "limit": 3}
    settings = {"CONTEXT_AWARE": "no", "LIMIT": "7"}
    played = play(tmp_path, files, ["Hi."], environment=settings)
    assert played.start == {"aware": False, "limit": 7}


def test_static_values_are_injected_verbatim_and_never_mutated(tmp_path):
    """Line 201."""
    value = {"a": [1, 2.5, None, True], "b": {" c ": "{tier}  two\nlines"}}
    code = """
def spoil(context_variables) -> str:
    \"\"\"Change what was read, and try to set it.\"\"\"
    context_variables["box"]["a"].append("more")
    context_variables["box"]["b"].clear()
    context_variables.set("box", {})
    return "spoiled"
"""
    files = package(
        {"box": static(value, "document")}, "box", **desk("spoil", agent="Talker", code=code)
    )
    said = errors(tmp_path, files)
    assert [code for code, _ in said] == ["VAR021"], "the checker sees it coming"
    hidden = code.replace('set("box"', 'set("b" + "ox"')
    files["tools/desk.py"] = hidden
    played = play(tmp_path, files, [call("spoil"), "Hi."])
    assert "box comes from static and cannot be set" in played.of(ToolFailed)[0].error
    assert played.values["box"] == value
    assert json.loads(shown(played)["box"]) == json.loads(shown(played, 1)["box"]) == value
