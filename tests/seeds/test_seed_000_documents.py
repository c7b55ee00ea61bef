"""Seed 000, lines 202-204, 213-214, 390 and 457-475: documents, and values that are too much."""

import logging

from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    database,
    derived,
    desk,
    environment,
    finish,
    handoffs,
    opened,
    play,
    read,
    say,
    store,
    variables,
    write_package,
)
from weft.app.folders import LOCAL
from weft.cli.app import main
from weft.engine.events import ContextFetched, ToolReturned, VariableSet
from weft.ports.scope import Scope
from weft.testing.models import ScriptedModel, call

DATABASE = "autogen_ai_agents"
SECRET = "s3cret-canary-71c4"


def package(definitions, *exposure, **files):
    """Return a package of one agent that is shown some of its variables."""
    listed = variables(definitions, {"Talker": exposure} if exposure else None)
    ends = handoffs(("Talker", "terminate"))
    return {"agents": agents("Talker"), "handoffs": ends, "context_variables": listed, **files}


def shown(played):
    """Return the variables that stand in the last prompt, with their values."""
    lines = played.prompt("Talker", -1).partition("[CONTEXT VARIABLES]\n")[2].splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_configured_documents_and_fields_are_fetched(tmp_path):
    """Lines 202-203: by a field of the run's, one field, a field inside, or several."""
    definitions = {
        "name": database("Users", search_by="user_id", field="Name"),
        "city": database("Users", search_by="user_id", field="Address.City"),
        "who": database("Users", "document", search_by="user_id", fields=["Name", "Age"]),
    }
    users = [
        ("Users", DATABASE, {"_id": "1", "user_id": "ada", "Name": "Ada", "Age": 36, "Pin": 1}),
        ("Users", DATABASE, {"_id": "2", "user_id": "bob", "Name": "Bob", "Age": 40}),
        ("Users", DATABASE, {"_id": "1", "Address": {"City": "London"}}),
    ]
    played = play(tmp_path, package(definitions, *definitions), ["Hi."], documents=users)
    assert dict(played.values) == {
        "name": "Ada",
        "city": "London",
        "who": {"Name": "Ada", "Age": 36},
    }
    assert played.of(ContextFetched)[0].found["name"]["query"] == {"user_id": "ada"}


def test_database_name_of_a_variable_overrides_the_default(tmp_path):
    """Lines 203-204."""
    definitions = {
        "own": database("Concepts", field="Plan"),
        "usual": database("Concepts", field="Plan", database_name=None),
    }
    stored = [
        ("Concepts", DATABASE, {"Plan": "from the named one"}),
        ("Concepts", None, {"Plan": "from the default"}),
    ]
    played = play(tmp_path, package(definitions, *definitions), ["Hi."], documents=stored)
    assert shown(played) == {"own": "from the named one", "usual": "from the default"}


def test_a_document_that_is_not_there_gives_the_default(tmp_path):
    """Lines 202-203: and says so in the journal."""
    definitions = {"plan": database("Concepts", field="Plan", default="free")}
    played = play(tmp_path, package(definitions, "plan"), ["Hi."])
    assert shown(played) == {"plan": "free"}
    assert played.of(ContextFetched)[0].found["plan"]["found"] is False


def test_tenant_data_is_the_tenants_own(tmp_path):
    """Lines 457, 466: the same package, another tenant, another value."""
    files = package({"plan": database("Concepts", field="Plan")}, "plan")
    for app, plan in (("acme", "gold"), ("bolt", "free")):
        stored = [("Concepts", DATABASE, {"_id": app, "Plan": plan})]
        scope = Scope(app, "ada")
        played = play(tmp_path, files, ["Hi."], documents=stored, scope=scope)
        assert shown(played) == {"plan": plan}


def test_database_values_may_change_outside_of_a_run(tmp_path):
    """Line 457: the next run sees it, and a tool of this one that reads it again."""
    code = '''
async def again(context_variables) -> str:
    """Read the plan once more."""
    return await context_variables.refresh("plan")
'''
    definitions = {"plan": database("Concepts", field="Plan")}
    files = package(definitions, "plan", **desk("again", agent="Talker", code=code))
    files["handoffs"] = handoffs(("Talker", "user"))
    write_package(tmp_path, files)
    model = ScriptedModel(["Hi.", call("again"), "Well.", "Hi."])

    async def scenario():
        await store(tmp_path, [("Concepts", DATABASE, {"_id": "1", "Plan": "free"})])
        async with await opened(tmp_path, model, {}) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            before = shown(await read(host, run, model))
            await store(tmp_path, [("Concepts", DATABASE, {"_id": "1", "Plan": "gold"})])
            await say("again")(host, run)
            after = await read(host, run, model)
            other = await host.start(NAME, scope=ADA, message="hi")
            return before, after, await read(host, other, model)

    before, after, other = finish(scenario())
    assert before == {"plan": "free"}
    assert after.of(ToolReturned)[0].value == "gold"
    assert after.values["plan"] == other.values["plan"] == "gold"


def test_logs_use_safe_previews_without_large_payloads_or_secrets(tmp_path, caplog, capsys):
    """Lines 213-214, 390: every log line of a run, and what an operator is shown of it."""
    caplog.set_level(logging.DEBUG)
    code = '''
def note(context_variables) -> str:
    """Use the key, and write a lot."""
    assert context_variables["key"]
    context_variables.set("noted", "blob-canary " * 5_000)
    return "noted"
'''
    key = {**environment("DESK_KEY", type_="string"), "secret": True}
    definitions = {
        "key": key,
        "noted": derived("", type_="string"),
    }
    files = package(definitions, "noted", **desk("note", agent="Talker", code=code))
    played = play(
        tmp_path,
        files,
        [call("note"), "Done."],
        environment={"DESK_KEY": SECRET},
        scope=LOCAL,
    )
    assert len(played.values["noted"]) == 60_000
    lines = [record.getMessage() for record in caplog.records]
    assert not [line for line in lines if SECRET in line]
    # At DEBUG a change is told with the beginning of the value, and nowhere else any of it.
    (change,) = [line for line in lines if "canary" in line]
    (event,) = [event for event in played.events if isinstance(event.data, VariableSet)]
    beginning = f'"{"blob-canary " * 25}'[:300]
    where = f"run {played.row.run}, event {event.seq}, turn 1"
    assert change == f'noted: "" -> {beginning}... (tool:note; {where})'
    assert main(["runs", "tail", "last", "--workspace", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    (preview,) = [line for line in printed.splitlines() if "noted = " in line]
    assert "blob-canary" in preview
    assert max(map(len, printed.splitlines())) < 300
    assert SECRET not in printed
    assert SECRET not in str(played.events)
