"""Variables that are declared and do not exist where a run is: in production, or in a lean run."""

import asyncio
import json
import logging
from contextlib import closing
from dataclasses import replace

import pytest

from support.source_play import declared, desk, play, variable
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.app.hosts import LOCAL, open_host
from weft.app.installation import linking_of, profile_of
from weft.cli.app import main
from weft.engine.events import RunStarted, ToolFailed, ToolReturned
from weft.errors import CheckFailed, LinkError, UsageError
from weft.inspect.replay import check_replay
from weft.runtime.variables.values import start_values
from weft.runtime.workflow import link, package_digest
from weft.testing.models import ScriptedModel, call

REGION = variable("str", "environment", env_var="SHOP_REGION", default="north")
PLAN = variable(
    "str", "database", collection="Plans", search_by="user_id", field="plan", default="free"
)
PAID = variable("bool", "computed", computation="plan != 'free'", inputs=["plan"])
TIER = variable("str", "static", value="gold")
KEY = {**variable("str", "environment", env_var="SHOP_KEY", required=True), "secret": True}
CODE = desk(
    '''
def look(name: str, context_variables) -> list:
    """Look for a variable."""
    return [name in context_variables, context_variables.get(name), list(context_variables)]
''',
    '''
def put(name: str, value: str, context_variables) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return "done"
''',
)


def write_package(folder, variables, *, condition=None, prompt="Serve."):
    """Write a package of one agent that is shown all of its variables."""
    folder.mkdir(parents=True)
    section = {"id": "role", "heading": "Role", "content": prompt}
    rule = {"source_agent": "A", "target_agent": "terminate"}
    rules = [{**rule, "condition": condition}] if condition else []
    files = {
        "orchestrator": {"workflow_name": folder.name, "initial_agent": "A"},
        "agents": {"agents": [{"agent_name": "A", "prompt_sections": [section]}]},
        "context_variables": {
            "definitions": variables,
            "agents": {"A": {"variables": list(variables)}},
        },
        "handoffs": {"handoff_rules": [*rules, rule]},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def run_in(workspace, settings, **start):
    """Run the package of a workspace; return its events and what the agent was sent."""

    async def scenario():
        given = {"WEFT_MODEL": "sample", **settings}
        async with await open_host(workspace, journal=":memory:", environment=given) as host:
            run = await host.start("Shop", scope=LOCAL, message="hello", **start)
            row = await host.settled(run, scope=LOCAL)
            assert row.outcome == "completed", row.reason
            events = [event async for event in host.events(run, scope=LOCAL)]
            workflow = await host.workflow(run, scope=LOCAL)
            return events, workflow

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def named_in(events):
    """Return the variables that stood in the prompt."""
    (manifest,) = (event.data.manifest for event in events if hasattr(event.data, "manifest"))
    return [name for segment in manifest["segments"] for name in segment.get("names", ())]


def test_production_takes_environment_variables_out_and_says_so(tmp_path, caplog):
    write_package(tmp_path / "workflows/Shop", {"region": REGION, "tier": TIER})
    with caplog.at_level(logging.INFO, "weft.context"):
        events, workflow = run_in(tmp_path, {"SHOP_REGION": "south"})
        assert events[0].data.values == {"region": "south"}
        assert named_in(events) == ["region", "tier"]
        assert not caplog.records
        events, workflow = run_in(tmp_path, {"SHOP_REGION": "south", "ENVIRONMENT": "Production "})
    assert events[0].data.values == {}
    assert named_in(events) == ["tier"], "not even as null"
    assert workflow.suppressed == {"region"}
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("INFO", "Shop: suppressed here: region")


SHELLS = [{}, {"ENVIRONMENT": "production"}, {"CONTEXT_INCLUDE_SCHEMA": "0"}]


@pytest.mark.parametrize("began", SHELLS)
@pytest.mark.parametrize("there", SHELLS)
def test_a_run_is_shown_replayed_and_forked_as_it_was_made(tmp_path, began, there):
    write_package(tmp_path / "workflows/Shop", {"region": REGION, "plan": PLAN, "tier": TIER})

    async def scenario():
        def opened(settings):
            given = {"WEFT_MODEL": "sample", **settings}
            return open_host(tmp_path, journal=tmp_path / "j.db", environment=given)

        async with await opened(began) as host:
            run = await host.start("Shop", scope=LOCAL, message="hello")
            await host.settled(run, scope=LOCAL)
            events = [event async for event in host.events(run, scope=LOCAL)]
        async with await opened(there) as host:
            workflow = await host.workflow(run, scope=LOCAL)
            assert check_replay(workflow, run, events) == []
            fork = await host.fork(run, turn=1, scope=LOCAL)
            await host.settled(fork, scope=LOCAL)
            forked = [event async for event in host.events(fork, scope=LOCAL)]
            later = await host.start("Shop", scope=LOCAL, message="hello")
            row = await host.run(later, scope=LOCAL)
            return events, forked, (await host.workflow(later, scope=LOCAL)).suppressed, row

    events, forked, hidden_there, row = asyncio.run(asyncio.wait_for(scenario(), 30))
    hidden = {"ENVIRONMENT": ["region"], "CONTEXT_INCLUDE_SCHEMA": ["plan"]}
    gone = [name for switch in began for name in hidden[switch]]
    assert named_in(events) == [name for name in ("region", "plan", "tier") if name not in gone]
    assert named_in(forked) == named_in(events)
    assert hidden_there == {name for switch in there for name in hidden[switch]}
    assert package_digest(row.digest) == package_digest(events[0].data.digest)


@pytest.mark.parametrize("said", ["production", "Prod"])
def test_names_of_production(said):
    assert profile_of({"ENVIRONMENT": said}) == "production"


@pytest.mark.parametrize("said", ["", " ", "development", "DEV", "test", "staging"])
def test_names_of_what_is_not_production(said):
    assert profile_of({"ENVIRONMENT": said}) == "development"


def test_unknown_environment_is_refused(tmp_path, monkeypatch, capsys):
    write_package(tmp_path / "workflows/Shop", {"tier": TIER})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVIRONMENT", "live")
    names = "production, prod, development, dev, test, staging"
    for words in (["run", "Shop", "hello", "--model", "sample"], ["check"]):
        assert main(words) == 2
        assert f"ENVIRONMENT must be one of {names}, not 'live'\n" in capsys.readouterr().err
    assert main(["check", "--profile", "production"]) == 0, "what is said goes first"


def test_the_program_may_say_that_this_is_production(tmp_path):
    write_package(tmp_path / "workflows/Shop", {"region": REGION})

    async def suppressed(**options):
        given = {"WEFT_MODEL": "sample", "ENVIRONMENT": "production"}
        host = await open_host(tmp_path, journal=":memory:", environment=given, **options)
        async with host:
            run = await host.start("Shop", scope=LOCAL, message="hello")
            await host.settled(run, scope=LOCAL)
            return (await host.workflow(run, scope=LOCAL)).suppressed

    assert asyncio.run(suppressed()) == {"region"}
    assert asyncio.run(suppressed(production=False)) == frozenset()


def test_production_refuses_start_values_of_what_it_takes_out(tmp_path):
    write_package(tmp_path / "workflows/Shop", {"region": REGION})
    events, _ = run_in(tmp_path, {}, values={"region": "east"})
    assert events[0].data.values == {"region": "east"}
    with pytest.raises(UsageError, match="there is no variable region"):
        run_in(tmp_path, {"ENVIRONMENT": "production"}, values={"region": "east"})


@pytest.mark.parametrize(
    "use", [{"condition": "region == 'south'"}, {"prompt": "Serve the {region}."}]
)
def test_production_refuses_rules_and_prompts_on_what_it_takes_out(tmp_path, use):
    region = {**REGION, "routing": True}
    write_package(tmp_path / "workflows/Shop", {"region": region}, **use)
    run_in(tmp_path, {"SHOP_REGION": "south"})
    with pytest.raises(CheckFailed) as refused:
        run_in(tmp_path, {"ENVIRONMENT": "production"})
    assert {finding.code for finding in refused.value.findings if finding.severity == "error"} <= {
        "ENV001",
        "ENV002",
    }


LINKED = {
    "rule": {
        "handoffs": [
            {"source_agent": "A", "target_agent": "terminate", "condition": "region == 'x'"}
        ]
    },
    "computed": {
        "variables": {
            "region": REGION,
            "far": variable("bool", "computed", computation="region != 'x'", inputs=["region"]),
        }
    },
}


@pytest.mark.parametrize("use", LINKED)
def test_unchecked_package_is_refused(use):
    spec = declared({"region": REGION}).model_dump(by_alias=True)
    spec = declared({}).model_validate({**spec, **LINKED[use]})
    with closing(PythonToolLoader()) as loader:
        link(spec, {}, loader)
        with pytest.raises(LinkError, match="region, which does not exist here"):
            link(spec, {}, loader, linking_of({"ENVIRONMENT": "production"}))


def test_tools_neither_find_nor_set_what_is_taken_out():
    told = play(
        declared({"region": REGION, "tier": TIER}, tools=["look", "put"]),
        ScriptedModel(
            [call("look", name="region"), call("put", name="region", value="x"), "Done."]
        ),
        code=CODE,
        environment={"SHOP_REGION": "south"},
        linking=linking_of({"ENVIRONMENT": "production"}),
    )
    found, value, names = told.of(ToolReturned)[0].value
    assert (found, value) == (False, None)
    assert "region" not in names
    assert "tier" in names
    assert told.of(ToolFailed)[0].error == "there is no variable region"
    assert told.of(RunStarted)[0].values == {}
    told.expect_same_again()


def test_a_secret_exists_in_production_as_well():
    told = play(
        declared({"key": KEY}, tools=["look"]),
        ScriptedModel([call("look", name="key"), "Done."]),
        code=CODE,
        environment={"SHOP_KEY": "s3cret-key"},
        linking=linking_of({"ENVIRONMENT": "production"}),
    )
    assert told.of(ToolReturned)[0].value[:2] == [True, "(secret)"]


def test_removed_variables_are_purged_before_use(caplog):
    """Whoever has put it in: a link that did not take it out, or a later change of one."""
    with closing(PythonToolLoader()) as loader:
        workflow = link(declared({"region": REGION, "tier": TIER}), {}, loader)
    careless = replace(workflow, suppressed=frozenset({"region"}))
    with caplog.at_level(logging.WARNING, "weft.context"):
        values = start_values(careless, environment={"SHOP_REGION": "x"}, given={}, kept={})
    assert values == {}
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "region" in record.getMessage()
    assert "x" not in record.getMessage().split()


@pytest.mark.parametrize("said", ["0", "false", "No", "off"])
def test_context_include_schema_takes_database_variables_out(tmp_path, said, caplog):
    write_package(tmp_path / "workflows/Shop", {"plan": PLAN, "tier": TIER})
    with caplog.at_level(logging.INFO, "weft.context"):
        events, _ = run_in(tmp_path, {"CONTEXT_INCLUDE_SCHEMA": said})
    assert named_in(events) == ["tier"]
    assert [record.getMessage() for record in caplog.records] == ["Shop: suppressed here: plan"]
    assert not (tmp_path / ".weft/documents.db").exists(), "the store is not even opened"


@pytest.mark.parametrize("said", [None, "1", "true", "on", ""])
def test_context_include_schema_leaves_them_unless_it_says_no(tmp_path, said):
    write_package(tmp_path / "workflows/Shop", {"plan": PLAN, "tier": TIER})
    events, _ = run_in(tmp_path, {} if said is None else {"CONTEXT_INCLUDE_SCHEMA": said})
    assert named_in(events) == ["plan", "tier"]


def test_prompts_are_left_as_they_are_but_for_what_is_taken_out():
    section = {"id": "r", "content": "Plan [{plan}] of {tier}, {{plan}}, {{{{plan}}}}, {"}
    spec = declared({"plan": PLAN, "tier": TIER}, exposure={})
    spec = spec.model_validate(
        {
            **spec.model_dump(by_alias=True),
            "agents": [{"agent_name": "A", "prompt_sections": [section]}],
        }
    )
    model = ScriptedModel(["Done."])
    play(spec, model, linking=linking_of({"CONTEXT_INCLUDE_SCHEMA": "0"}))
    assert model.requests[0].messages[0]["content"] == "Plan [] of gold, {plan}, {{{plan}}}, {"


@pytest.mark.parametrize(
    ("settings", "variables", "condition"),
    [
        ({"CONTEXT_INCLUDE_SCHEMA": "0"}, {"plan": {**PLAN, "routing": True}}, "plan == 'x'"),
        ({"CONTEXT_INCLUDE_SCHEMA": "0"}, {"plan": PLAN, "paid": PAID}, None),
        ({"ENVIRONMENT": "production"}, {"plan": REGION, "paid": PAID}, None),
    ],
)
def test_check_finds_what_run_refuses(
    tmp_path, monkeypatch, capsys, settings, variables, condition
):
    write_package(tmp_path / "workflows/Shop", variables, condition=condition)
    monkeypatch.chdir(tmp_path)
    commands = (["check"], ["run", "Shop", "hello", "--model", "sample"])
    for words in commands:
        assert main(words) == 0
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for words in commands:
        assert main(words) == 1
        printed = capsys.readouterr()
        assert "error[ENV003]" in printed.out + printed.err
        assert "plan, which does not exist here" in printed.out + printed.err


def test_context_include_schema_is_yes_or_no(tmp_path):
    with pytest.raises(UsageError, match="CONTEXT_INCLUDE_SCHEMA must be 1 or 0, not 'perhaps'"):
        asyncio.run(open_host(tmp_path, environment={"CONTEXT_INCLUDE_SCHEMA": "perhaps"}))


def test_weft_run_in_production(tmp_path, monkeypatch, capsys):
    write_package(tmp_path / "workflows/Shop", {"region": REGION, "tier": TIER})
    monkeypatch.chdir(tmp_path)
    for name, value in (("SHOP_REGION", "south"), ("ENVIRONMENT", "production")):
        monkeypatch.setenv(name, value)
    assert main(["run", "Shop", "hello", "--model", "sample", "--verbose"]) == 0
    printed = capsys.readouterr()
    assert "Shop: suppressed here: region" in printed.err
    assert main(["inspect", "last@1"]) == 0
    page = capsys.readouterr().out
    assert "tier" in page
    assert "region" not in page
    assert "south" not in page
    assert main(["run", "Shop", "hello", "--set", "region=east"]) == 2
    assert "there is no variable region" in capsys.readouterr().err
