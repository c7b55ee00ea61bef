"""Seed 000, lines 4-48: database, environment and static variables."""

import logging
from dataclasses import replace

import pytest

from seeds import verbatim
from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    database,
    derived,
    desk,
    environment,
    findings,
    finish,
    handoffs,
    opened,
    play,
    read,
    say,
    says,
    static,
    variables,
    write_package,
)
from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.memory import MemoryStore
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.system_clock import SystemClock
from weft.adapters.vault import MemoryVault
from weft.app.documents import DOCUMENTS, open_documents
from weft.app.hosts import open_host
from weft.engine.events import ContextFetched, ToolCalled, ToolFailed, ToolReturned
from weft.errors import CheckFailed
from weft.packages.reader import read_package
from weft.ports.documents import Collection
from weft.runtime.host import Host
from weft.runtime.workflow import link
from weft.testing.hosts import OneModel
from weft.testing.models import ScriptedModel, call

ALL_KINDS = {
    "tier": static("beta"),
    "overview": database("Concepts", field="ConceptOverview"),
    "aware": environment("CONTEXT_AWARE", default=True),
    "complete": derived(False, says("Talker", "NEXT")),
}
OVERVIEW = ("Concepts", "autogen_ai_agents", {"ConceptOverview": "A shop for tea."})
TO_END = handoffs(("Talker", "terminate"))


def package(definitions, exposure=(), **files):
    """Return a package of one agent that is shown some of its variables."""
    listed = variables(definitions, {"Talker": exposure} if exposure else None)
    talker = {"agents": agents(Talker="Say NEXT when it is done."), "handoffs": TO_END}
    return {**talker, "context_variables": listed, **files}


def test_the_runtime_enforces_the_taxonomy_without_workflow_specific_code(tmp_path):
    """Lines 6-7: a package without a line of code has all kinds; another kind is refused."""
    files = package(ALL_KINDS, ALL_KINDS)
    played = play(tmp_path, files, ["NEXT"], documents=[OVERVIEW])
    assert dict(played.values) == {
        "tier": "beta",
        "overview": "A shop for tea.",
        "aware": True,
        "complete": True,
    }
    assert not played.of(ToolCalled)
    odd = package({"mood": {"type": "string", "source": {"type": "guessed", "value": "x"}}})
    said = [finding for finding in findings(tmp_path, odd) if finding.severity == "error"]
    assert [finding.code for finding in said] == ["SCHEMA007"]
    assert "guessed" in said[0].message


def test_an_invalid_file_fails_fast_before_execution(tmp_path):
    """Lines 7-10; decision c: no run and no empty context, but every fault with its place."""
    files = package(
        {
            "tier": {"type": "string", "source": {"type": "static"}},
            "limit": {"type": "whole", "source": {"type": "static", "value": 3}},
        }
    )
    with pytest.raises(CheckFailed, match="has 2 errors and cannot run") as caught:
        play(tmp_path, files, ["never asked"])
    told = [
        (finding.code, finding.place.file.rpartition("/")[2], finding.place.line)
        for finding in caught.value.findings
    ]
    assert told == [
        ("SCHEMA009", "context_variables.json", 6),
        ("SCHEMA007", "context_variables.json", 11),
    ]
    assert all(finding.place.column and finding.hint for finding in caught.value.findings)


def test_database_values_are_loaded_on_demand(tmp_path):
    """Line 15: a store that no run asks is not even opened."""
    play(tmp_path, package({"tier": static("beta")}, ["tier"]), ["Hi."])
    assert not (tmp_path / DOCUMENTS).exists()
    played = play(tmp_path, package(ALL_KINDS, ["overview"]), ["Hi."])
    assert (tmp_path / DOCUMENTS).exists()
    assert played.of(ContextFetched)[0].found["overview"]["found"] is False


def test_database_values_come_from_mongodb_collections(tmp_path, mongodb_database):
    """Line 15."""
    settings = {"WEFT_DOCUMENTS": mongodb_database}

    async def put():
        kept = await open_documents(tmp_path, settings)
        await kept.put(ADA, Collection("Concepts"), {"_id": "1"}, OVERVIEW[2])
        await kept.close()

    finish(put())
    own = {"overview": database("Concepts", field="ConceptOverview", database_name=None)}
    played = play(tmp_path, package(own, ["overview"]), ["Hi."], environment=settings)
    assert played.prompt("Talker").endswith("overview: A shop for tea.")
    assert not (tmp_path / DOCUMENTS).exists()


def test_agents_read_database_values_for_reasoning_tool_arguments_and_messages(tmp_path):
    """Lines 15-17: read, and not written."""
    files = package(ALL_KINDS, ["overview"], **desk("look", "put", agent="Talker"))
    script = [call("look", name="overview"), call("put", name="overview", value="x"), "Tea it is."]
    played = play(tmp_path, files, script, documents=[OVERVIEW])
    assert played.prompt("Talker").endswith("overview: A shop for tea.")
    assert played.of(ToolReturned)[0].value == {"found": "A shop for tea."}
    assert "overview comes from database and cannot be set" in played.of(ToolFailed)[0].error
    assert played.values["overview"] == "A shop for tea."


def test_database_values_are_not_for_branching_unless_boolean_or_a_tight_enum(tmp_path):
    """Lines 17-18, 474; decision d: whoever means it declares it."""
    paying = database("Concepts", "boolean", field="Paying")
    rules = handoffs(("Talker", "terminate", "paying"), ("Talker", "user"))
    files = package({"paying": paying}, handoffs=rules)
    said = [finding for finding in findings(tmp_path, files) if finding.severity == "error"]
    assert [(finding.code, finding.message) for finding in said] == [
        (
            "COND004",
            "the condition of Talker -> terminate tests paying, which must not decide handoffs",
        )
    ]
    meant = package({"paying": {**paying, "routing": True}}, handoffs=rules)
    stored = ("Concepts", "autogen_ai_agents", {"Paying": True})
    played = play(tmp_path, meant, ["Hi."], documents=[stored])
    assert played.ways == [("Talker", "terminate")]


def test_environment_flags_come_from_variables_of_the_operating_system(tmp_path, monkeypatch):
    """Lines 21-22: those of the process, where nobody gives others."""
    monkeypatch.setenv("CONTEXT_AWARE", "no")
    monkeypatch.setenv("WEFT_MODEL", "you")
    monkeypatch.delenv("ENVIRONMENT", raising=False)
    write_package(tmp_path, package(ALL_KINDS, ["aware"]))
    model = ScriptedModel(["Hi."])

    async def scenario():
        async with await open_host(tmp_path, person=model.reply) as host:
            return await read(host, await host.start(NAME, scope=ADA, message="hi"), model)

    assert finish(scenario()).start == {"aware": False}


@pytest.mark.parametrize(("set_to", "target"), [("true", "Seller"), ("false", "terminate")])
def test_environment_flags_gate_capabilities(tmp_path, set_to, target):
    """Lines 22-24: the flag decides whether there is somebody who sells."""
    flags = {"selling": environment("MONETIZATION_ENABLED", default=False)}
    rules = handoffs(
        ("Talker", "Seller", "selling"), ("Talker", "terminate"), ("Seller", "terminate")
    )
    files = {"agents": agents("Talker", "Seller"), "context_variables": variables(flags)}
    played = play(
        tmp_path,
        {**files, "handoffs": rules},
        ["Hi.", "Buy?"],
        environment={"MONETIZATION_ENABLED": set_to},
    )
    assert played.ways[0] == ("Talker", target)


def test_only_the_necessary_flags_are_declared(tmp_path):
    """Lines 27-28: one that nothing reads is pointed out."""
    flags = {
        "selling": environment("MONETIZATION_ENABLED", default=False),
        "idle": environment("IDLE", default=False),
    }
    rules = handoffs(("Talker", "terminate", "selling"), ("Talker", "user"))
    said = [
        finding
        for finding in findings(tmp_path, package(flags, handoffs=rules))
        if finding.code == "NAME003"
    ]
    assert [(finding.severity, finding.message.split(":")[0]) for finding in said] == [
        ("warning", "the variable idle is never used")
    ]


def test_production_removes_all_environment_variables_at_load_time(tmp_path, caplog):
    """Lines 24-25; decision t: not in prompts, tools, values or conditions."""
    caplog.set_level(logging.INFO, "weft.context")
    files = package(ALL_KINDS, ["aware", "tier"], **desk("look", agent="Talker"))
    settings = {"ENVIRONMENT": "production", "CONTEXT_AWARE": "1"}
    played = play(tmp_path, files, [call("look", name="aware"), "Hi."], environment=settings)
    assert "aware" not in played.prompt("Talker")
    assert "tier: beta" in played.prompt("Talker")
    assert played.of(ToolReturned)[0].value == {"found": None}
    assert "aware" not in played.values
    assert ("INFO", "Desk: suppressed here: aware") in [
        (record.levelname, record.getMessage()) for record in caplog.records
    ]


def test_production_purges_environment_variables_before_the_context_is_returned(tmp_path, caplog):
    """Lines 25-26: whoever has put them in, here a workflow that was loaded for development."""
    loader = PythonToolLoader()
    spec = read_package(write_package(tmp_path, package(ALL_KINDS, ["aware"]))).spec
    held = replace(link(spec, {}, loader), suppressed=frozenset({"aware"}))

    async def find(_app, _name):
        return held

    async def scenario():
        model = ScriptedModel(["Hi."])
        parts = {"models": OneModel(model), "loader": loader, "clock": SystemClock()}
        parts |= {"live": MemoryLiveStream(), "vault": MemoryVault()}
        async with Host(store=MemoryStore(), find=find, **parts) as host:
            return await read(host, await host.start(NAME, scope=ADA, message="hi"), model)

    assert finish(scenario()).start == {}
    assert ("WARNING", "Desk: ['aware'] do not exist here and were removed") in [
        (record.levelname, record.getMessage()) for record in caplog.records
    ]


def test_a_run_of_development_keeps_the_environment_that_it_began_with(tmp_path):
    """Lines 24-26 hide the environment in production; a run records where it began (S14)."""
    files = package(
        ALL_KINDS, ["aware"], handoffs=handoffs(("Talker", "user")), **desk("look", agent="Talker")
    )
    write_package(tmp_path, files)
    model = ScriptedModel(["Hi.", call("look", name="aware"), "Well."])

    async def scenario():
        async with await opened(tmp_path, model, {"CONTEXT_AWARE": "1"}) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
        async with await opened(tmp_path, model, {"ENVIRONMENT": "production"}) as host:
            await say("and now?")(host, run)
            return await read(host, run, model)

    played = finish(scenario())
    assert ["aware" in played.prompt("Talker", number) for number in range(3)] == [True, True, True]
    assert played.of(ToolReturned)[0].value == {"found": True}


def test_static_values_depend_on_neither_environment_nor_database(tmp_path):
    """Lines 31-32, 201, 444: always loaded, never gated."""
    settings = {"ENVIRONMENT": "production", "CONTEXT_INCLUDE_SCHEMA": "0", "tier": "gold"}
    files = package(ALL_KINDS, ALL_KINDS)
    stored = ("tier", None, {"tier": "silver"})
    played = play(tmp_path, files, ["Hi."], environment=settings, documents=[stored])
    assert played.values["tier"] == "beta"
    assert "tier: beta" in played.prompt("Talker")


def test_static_values_are_versioned_with_the_workflow(tmp_path):
    """Line 33: another value is another version; a run keeps the one it began with."""
    waiting = {"handoffs": handoffs(("Talker", "user"))}
    model = ScriptedModel(["One.", "Two.", "Three."])

    async def scenario():
        write_package(tmp_path, package({"tier": static("beta")}, ["tier"], **waiting))
        async with await opened(tmp_path, model, {}) as host:
            old = await host.start(NAME, scope=ADA, message="hi")
            before = await read(host, old, model)
            write_package(tmp_path, package({"tier": static("final")}, ["tier"], **waiting))
            new = await host.start(NAME, scope=ADA, message="hi")
            after = await read(host, new, model)
            await say("and now?")(host, old)
            return before, after, await read(host, old, model)

    before, after, still = finish(scenario())
    assert before.row.digest == still.row.digest != after.row.digest
    shown = [still.prompt("Talker", number).rpartition(" ")[2] for number in range(3)]
    assert shown == ["beta", "final", "beta"]


def test_static_values_are_not_used_for_branching(tmp_path):
    """Lines 35, 255, 373, 446."""
    rules = handoffs(("Talker", "terminate", "tier == 'beta'"), ("Talker", "user"))
    said = findings(tmp_path, package({"tier": static("beta")}, handoffs=rules))
    assert [finding.code for finding in said if finding.severity == "error"] == ["COND004"]


@pytest.mark.parametrize("key", ["static_variables", "declarative_variables"])
def test_static_entries_of_a_list_are_represented_with_the_source_static(tmp_path, key):
    """Lines 30, 36-48, the entries verbatim: without a type it follows from the value."""
    files = {
        **package({}),
        "context_variables": verbatim.file_of(
            f'"{key}": [{verbatim.STATIC_ENTRIES}]',
            '"agents": {"Talker": {"variables": ["product_tier", "max_items"]}}',
        ),
    }
    played = play(tmp_path, files, ["Hi."])
    assert played.prompt("Talker").endswith("product_tier: beta\nmax_items: 25")
    spec = read_package(write_package(tmp_path, files)).spec
    assert {variable.source.type for variable in spec.variables.values()} == {"static"}
    assert (played.values["product_tier"], played.values["max_items"]) == ("beta", 25)
