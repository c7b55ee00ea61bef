"""Seed 000, lines 432-483: triggers to come, the decision guide, what to avoid."""

from typing import Literal

import pytest
from pydantic import BaseModel

from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    answer,
    answers,
    database,
    derived,
    desk,
    environment,
    errors,
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
from weft.engine.events import Event, ModelReplied, TimerFired, TimerSet, ToolFailed, ToolReturned
from weft.engine.variables.trigger_index import Fires
from weft.errors import CheckFailed
from weft.inspect.replay import check_replay
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors, review_package
from weft.runtime.workflow import Linking
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call


def package(definitions, shown=(), **files):
    """Return a package of one agent that talks with a user."""
    listed = variables(definitions, {"Talker": shown} if shown else None)
    waits = handoffs(("Talker", "user"))
    talker = {"agents": agents(Talker="Say DONE."), "handoffs": waits}
    return {**talker, "context_variables": listed, **files}


def flag(**trigger):
    return {"flag": derived(False, trigger)}


def test_agent_turn_count(tmp_path):
    """Line 435: set with the turn that it names, not before."""
    files = package(flag(type="agent_turn_count", agent="Talker", count=2), ["flag"])
    played = play(tmp_path, files, ["One.", "Two.", "Three."], after=[say("a"), say("b")])
    shown = [played.prompt("Talker", number).rpartition(" ")[2] for number in range(3)]
    assert shown == ["false", "false", "true"]
    assert played.sets("flag") == [(True, "trigger")]


FIND = '''
def find(number: int) -> dict:
    """Look an order up."""
    if number < 0:
        raise ValueError("no such order")
    return {"order": {"total": number * 10}}
'''


def test_tool_response(tmp_path):
    """Line 436: set when the tool has returned; a value may come from what it returned."""
    total = {"type": "tool_response", "tool": "find", "response_key": "order.total"}
    definitions = {
        **flag(type="tool_response", tool="find"),
        "total": derived(0, total, type_="integer"),
    }
    files = package(definitions, **desk("find", agent="Talker", code=FIND))
    failed = play(tmp_path, files, [call("find", number=-1), "Hm."])
    assert (failed.values["flag"], failed.values["total"]) == (False, 0)
    played = play(tmp_path, files, [call("find", number=4), "Well."])
    assert (played.values["flag"], played.values["total"]) == (True, 40)


def test_timer_expired(tmp_path):
    """Line 437: a while after the start, also while nobody says anything."""
    files = package(flag(type="timer_expired", after_seconds=60))
    folder = read_package(write_package(tmp_path, files))
    clock, model = ManualClock(), ScriptedModel(["One.", "Two."])

    async def scenario():
        async with host_for(folder.spec, model, clock=clock) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            await clock.advance(59)
            before = await read(host, run, model)
            await clock.advance(2)
            return before, await read(host, run, model)

    before, after = finish(scenario())
    assert (before.values["flag"], after.values["flag"]) == (False, True)
    assert [event.at for event in after.of(TimerSet)] == [before.events[0].at + 60_000]
    assert len(after.of(TimerFired)) == 1


def test_function(tmp_path):
    """Line 438: named in the package, asked after each turn, without access to the run."""
    code = """
def long_enough(content, values):
    return len(content) > values["limit"]
"""
    trigger = {"type": "function", "function": "tools.judging:long_enough"}
    definitions = {**flag(**trigger), "limit": static(10, "integer")}
    files = package(definitions, **{"tools/judging.py": code})
    played = play(tmp_path, files, ["Short.", "Quite a long reply."], after=[say("more")])
    assert played.sets("flag") == [(True, "trigger")]
    missing = package(
        flag(**{**trigger, "function": "tools.judging:absent"}), **{"tools/judging.py": code}
    )
    assert [code for code, _ in errors(tmp_path, missing)] == ["CODE002"]


def test_new_triggers_remain_deterministic(tmp_path):
    """Lines 434, 479: decided again from the journal, with nothing called, they say the same."""
    code = (
        FIND
        + """

def longer(content):
    return len(content) > 3
"""
    )
    definitions = {
        "turns": derived(False, {"type": "agent_turn_count", "agent": "Talker", "count": 1}),
        "found": derived(False, {"type": "tool_response", "tool": "find"}),
        "late": derived(False, {"type": "timer_expired", "after_seconds": 0.01}),
        "long": derived(False, {"type": "function", "function": "tools.desk:longer"}),
        "said": derived(False, says("Talker", "DONE")),
    }
    files = package(definitions, list(definitions), **desk("find", agent="Talker", code=code))
    write_package(tmp_path, files)
    model = ScriptedModel([call("find", number=4), "Well then.", "DONE"])

    async def scenario():
        async with await opened(tmp_path, model, {}) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            events = host.events(run, scope=ADA, follow=True)
            async for event in events:
                if isinstance(event, Event) and isinstance(event.data, TimerFired):
                    break
            await events.aclose()
            await host.settled(run, scope=ADA)
            await say("go on")(host, run)
            return await read(host, run, model), await host.workflow(run, scope=ADA)

    played, workflow = finish(scenario())
    assert dict(played.values) == dict.fromkeys(definitions, True)
    assert check_replay(workflow, played.row.run, played.events) == []


def test_database_is_descriptive_persisted_and_not_for_branching(tmp_path):
    """Line 442; the same as lines 15-18, at one glance."""
    rules = handoffs(("Talker", "terminate", "plan == 'gold'"), ("Talker", "user"))
    definitions = {"plan": database("Concepts", field="Plan")}
    stored = [("Concepts", "autogen_ai_agents", {"Plan": "gold"})]
    assert play(tmp_path, package(definitions), ["Hi."], documents=stored).values["plan"] == "gold"
    again = play(tmp_path, package(definitions), ["Hi."])
    assert again.values["plan"] == "gold", "it outlives runs"
    assert [code for code, _ in errors(tmp_path, package(definitions, handoffs=rules))] == [
        "COND004"
    ]


def test_a_deployment_toggle_is_changed_by_operators_without_a_change_of_the_package(tmp_path):
    """Lines 458, 465: the same digest behaves otherwise, and in production it is not there."""
    files = package({"x": environment("ENABLE_X", default=False)}, ["x"])
    off, on, gone = (
        play(tmp_path, files, ["Hi."], environment=settings)
        for settings in ({}, {"ENABLE_X": "on"}, {"ENABLE_X": "on", "ENVIRONMENT": "production"})
    )
    assert off.row.digest == on.row.digest == gone.row.digest.partition("~")[0]
    assert (off.values["x"], on.values["x"], "x" in gone.values) == (False, True, False)


def test_a_constant_for_prompts_is_static(tmp_path):
    """Lines 459, 468: whatever the environment says."""
    files = package({"product_tier": static("beta")}, ["product_tier"])
    played = play(tmp_path, files, ["Hi."], environment={"PRODUCT_TIER": "gold"})
    assert played.prompt("Talker").endswith("product_tier: beta")


def test_values_that_change_are_derived(tmp_path):
    """Lines 460-461, 467: by words of an agent, or by a button; no other kind changes so."""
    definitions = {
        "done": derived(False, says("Talker", "DONE")),
        "choice": derived("none", answers("ask", "button"), type_="string"),
    }
    files = package(definitions, **desk(agent="Talker", ui=["ask"]))
    played = play(tmp_path, files, [call("ask"), "DONE"], after=[answer({"button": "approve"})])
    assert dict(played.values) == {"done": True, "choice": "approve"}
    odd = static("beta")
    odd["source"]["triggers"] = [says("Talker", "DONE")]
    assert errors(tmp_path, package({"tier": odd}))[0][0] == "SCHEMA008"


def test_a_large_document_is_summarised_instead_of_shown(tmp_path):
    """Lines 462, 475: one field of it, and a budget that says what was left out."""
    huge = {"Summary": "A shop.", "Text": "canary " * 20_000}
    definitions = {
        "summary": database("Concepts", field="Summary"),
        "text": database("Concepts", field="Text"),
    }
    files = package(definitions, ["summary", "text"])
    files["agents"]["agents"][0]["context"] = [
        {"kind": "variables", "max_tokens": 200},
        {"kind": "history"},
    ]
    stored = [("Concepts", "autogen_ai_agents", huge)]
    played = play(tmp_path, files, ["Hi."], documents=stored)
    assert played.prompt("Talker").endswith("summary: A shop.")
    (manifest,) = [
        event.data.manifest for event in played.events if hasattr(event.data, "manifest")
    ]
    assert [entry["names"] for entry in manifest["left_out"]] == [["text"]]


def test_dependent_values_are_derived_on_demand(tmp_path):
    """Line 469: in a tool, or computed; it is not stored a second time."""
    code = '''
def words(context_variables) -> int:
    """Count."""
    return len(context_variables["plan"].split())
'''
    many = {"type": "computed", "computation": "plan == 'a b c'", "inputs": ["plan"]}
    definitions = {"plan": static("a b c"), "many": {"type": "boolean", "source": many}}
    files = package(definitions, **desk("words", agent="Talker", code=code))
    played = play(tmp_path, files, [call("words"), "Hi."])
    assert played.of(ToolReturned)[0].value == 3
    assert played.values["many"] is True


def test_secrets_are_not_stored_in_context_variables(tmp_path):
    """Line 472: a package that holds one does not run."""
    for definition in (
        static("9f2c81d07be4"),
        derived("9f2c81d07be4", type_="string"),
    ):
        files = package({"api_key": definition})
        assert "VAR005" in [code for code, _ in errors(tmp_path, files)]
        with pytest.raises(CheckFailed):
            play(tmp_path, files, ["never asked"])


def test_secret_environment_variables_are_never_echoed(tmp_path):
    """Line 472: shown by name, one is a finding; declared as secret, it reaches tools alone."""
    key = environment("PAYMENT_API_KEY", type_="string")
    said = findings(tmp_path, package({"payment": key}, ["payment"]))
    assert "EXPO013" in [finding.code for finding in said]
    code = '''
def pay(context_variables) -> dict:
    """Use the key, and talk too much."""
    return {"length": len(context_variables["payment"]), "key": context_variables["payment"]}
'''
    files = package({"payment": {**key, "secret": True}}, **desk("pay", agent="Talker", code=code))
    canary = "s3cret-canary-88"
    played = play(tmp_path, files, [call("pay"), "Paid."], environment={"PAYMENT_API_KEY": canary})
    assert played.of(ToolReturned)[0].value["length"] == len(canary)
    assert canary not in str(played.events)
    assert canary not in str(played.requests)


def test_a_brand_name_is_static_and_not_taken_from_the_environment(tmp_path):
    """Line 473: a prompt that depends on the environment is pointed out, with the remedy."""
    files = package({"brand": environment("BRAND", default="Tea", type_="string")}, ["brand"])
    files["agents"] = agents(Talker="You speak for {brand}.")
    (said,) = [finding for finding in findings(tmp_path, files) if finding.code == "ENV002"]
    assert (said.severity, said.hint[0]) == (
        "warning",
        "make brand static, or take it from a database",
    )
    files["context_variables"] = variables({"brand": static("Tea")}, {"Talker": ["brand"]})
    assert "ENV002" not in [finding.code for finding in findings(tmp_path, files)]
    settings = {"ENVIRONMENT": "production", "BRAND": "Coffee"}
    played = play(tmp_path, files, ["Hi."], environment=settings)
    assert played.prompt("Talker").startswith("You speak for Tea.")


def test_a_high_cardinality_value_is_converted_into_a_derived_flag(tmp_path):
    """Line 474: a tool looks at it during the run, and the flag decides."""
    code = '''
def weigh(context_variables) -> str:
    """Decide what the number means."""
    context_variables.set("large", context_variables["revenue"] > 1000)
    return "weighed"
'''
    definitions = {
        "revenue": database("Concepts", "integer", field="Revenue"),
        "large": derived(False),
    }
    rules = handoffs(("Talker", "terminate", "large"), ("Talker", "user"))
    direct = handoffs(("Talker", "terminate", "revenue > 1000"), ("Talker", "user"))
    files = package(definitions, handoffs=rules, **desk("weigh", agent="Talker", code=code))
    assert [code for code, _ in errors(tmp_path, {**files, "handoffs": direct})] == ["COND004"]
    stored = [("Concepts", "autogen_ai_agents", {"Revenue": 5000})]
    played = play(tmp_path, files, [call("weigh"), "So."], documents=stored)
    assert played.ways == [("Talker", "terminate")]


class LongerThan(BaseModel, extra="forbid"):
    """What a trigger of the kind below may say."""

    words: int
    unit: Literal["words"] = "words"


class ReplyLength:
    """A kind of trigger that Weft does not have: an agent has said more than so many words."""

    settings = LongerThan

    def fires(self, settings, event, _state):
        said = event.data.text if isinstance(event.data, ModelReplied) else ""
        return Fires(True) if len(said.split()) > settings.words else None


KINDS = {"reply_length": ReplyLength()}


def test_a_brand_new_trigger_type_is_replayable_from_the_event_log(tmp_path):
    """Lines 478-479; decision 5: one class, nothing else is touched."""
    files = package(flag(type="x:reply_length", words=3), ["flag"])
    folder = read_package(write_package(tmp_path, files))
    model = ScriptedModel(["Short.", "Now that is longer.", "Well."])

    async def scenario():
        async with host_for(folder.spec, model, linking=Linking(kinds=KINDS)) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            for text in ("a", "b"):
                await host.settled(run, scope=ADA)
                await say(text)(host, run)
            return await read(host, run, model), await host.workflow(run, scope=ADA)

    played, workflow = finish(scenario())
    shown = [played.prompt("Talker", number).rpartition(" ")[2] for number in range(3)]
    assert shown == ["false", "false", "true"]
    assert check_replay(workflow, played.row.run, played.events) == []


@pytest.mark.parametrize("keys", [{"words": "many"}, {"words": 3, "code": "len(text)"}])
def test_a_brand_new_trigger_type_is_represented_declaratively(tmp_path, keys):
    """Line 481: it has the keys its class names, and no code stands in the file."""
    folder = read_package(write_package(tmp_path, package(flag(type="x:reply_length", **keys))))
    (said,) = [
        finding for finding in review_package(folder, kinds=KINDS) if finding.code == "VAR027"
    ]
    assert f"{list(keys)[-1]}: " in said.message
    with pytest.raises(CheckFailed):
        refuse_errors(folder, kinds=KINDS)


def test_unregistered_trigger_type_is_refused(tmp_path):
    """Line 478."""
    files = package(flag(type="x:reply_length", words=3))
    assert "x:reply_length" in errors(tmp_path, files)[0][1]
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"])


def test_otherwise_a_tool_writes_the_derived_variable_explicitly(tmp_path):
    """Line 483: what depends on the world outside belongs into a tool."""
    definitions = {"weather": derived("unknown", type_="string")}
    files = package(definitions, ["weather"], **desk("put", agent="Talker"))
    played = play(tmp_path, files, [call("put", name="weather", value="rain"), "It rains."])
    assert played.sets("weather") == [("rain", "tool:put")]
    assert played.prompt("Talker", 1).endswith("weather: rain")
    assert not played.of(ToolFailed)
