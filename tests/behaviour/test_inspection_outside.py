"""What came from outside, was judged, called at boundaries and shown, as inspection tells it."""

import asyncio
from dataclasses import replace

import pytest
from pydantic_core import to_jsonable_python

from support.outside_play import CODE, PlayDocuments, model, outside, outside_spec, say, talk
from support.run_play import ADA, Played, Seconds, read
from weft.adapters.memory import MemoryStore
from weft.adapters.models.recorded import RecordedModel
from weft.cli.pages.inspect import comparison_page, run_page, turn_page
from weft.cli.streams import Streams
from weft.engine.events import (
    ConditionJudged,
    ModelConsulted,
    ModelReplied,
    RunEnded,
    RunEnding,
    ToolFailed,
    TurnFailed,
)
from weft.engine.turn.hook_points import hook_label
from weft.errors import ModelError, UsageError
from weft.inspect.replay import check_replay
from weft.inspect.run import inspect_run
from weft.inspect.turn import compare_turns, inspect_turn
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, call


def played(answering=None, spec=None, documents=None) -> Played:
    async def scenario():
        host = host_for(
            spec or outside_spec(),
            answering or model(),
            code=CODE,
            clock=Seconds(),
            store=MemoryStore(),
            outside=outside(documents),
        )
        async with host:
            return await read(host, await talk(host, ADA, "r1"))

    return asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.fixture(scope="module")
def run():
    return played()


@pytest.fixture(scope="module")
def told(run):
    return inspect_run(run.workflow, run.run, run.events)


def page(told):
    return run_page(told, Streams())


def test_run_itself_is_not_a_turn(run, told):
    assert [(turn.number, turn.agent) for turn in told.turns] == [
        (1, "Desk"), (2, "Desk"), (3, "Clerk"), (4, "Closer"),
    ]  # fmt: skip
    assert (told.status, told.outcome, told.ending) == ("ended", "completed", None)
    assert to_jsonable_python(told)["turns"][0]["fetched"][0]["origin"] == "risk"
    with pytest.raises(UsageError, match="has no turn 0"):
        inspect_turn(run.workflow, run.run, run.events, 0)


def test_fetched_values_have_place_time_default_and_error(told):
    found = {item.origin: item for item in told.fetched}
    assert [(item.origin, item.how) for item in told.fetched] == [
        ("plan", "found"), ("tier", "default"), ("terms", "found"), ("claim", "not found"),
        ("mcp:shop", "found"),
    ]  # fmt: skip
    assert found["plan"].where == 'database plans {"user_id":"ada"}'
    assert found["plan"].note == {"collection": "plans", "query": {"user_id": "ada"}}
    assert found["plan"].ms is not None
    asked = 'of the workspace\'s database, query {"user_id":"ada"}, tenant app'
    assert found["claim"].where == f"collection claims {asked}"
    assert found["terms"].where == "file terms.txt"
    assert found["mcp:shop"].tools == ("shop_stock",)
    risk, rate = told.turns[0].fetched
    assert (risk.how, risk.error) == ("default", "rates.example answered 503")
    assert rate.where == "external rates.rate, as it was kept, after 2 attempts"
    shown = page(told)
    default = f"its default, because there is nothing in field tier of collection plans {asked}"
    assert f"  fetched tier: {default}" in shown
    assert f"  fetched claim: nothing in collection claims {asked} (" in shown
    assert "     fetched risk: its default, because rates.example answered 503 (" in shown
    assert "  fetched mcp:shop: 1 tool\n" in shown


class NothingInCrm(PlayDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        if collection.database == "crm":
            return None
        return await super().find(scope, collection, query, fields=fields)


def test_message_about_a_missing_document_names_database_tenant_and_query():
    spec = outside_spec()
    tier = spec.variables["tier"]
    source = tier.source.model_copy(update={"database": "crm", "field": None, "default": None})
    variables = {**spec.variables, "tier": tier.model_copy(update={"source": source})}
    spec = spec.model_copy(update={"variables": variables})
    run = played(spec=spec, documents=NothingInCrm())
    shown = page(inspect_run(run.workflow, run.run, run.events))
    where = 'collection plans of database crm, query {"user_id":"ada"}, tenant app'
    assert f"  fetched tier: nothing in {where} (" in shown


def test_writer_of_a_variable_is_shown_in_words(told):
    shown = page(told)
    assert "database, str; set from the database source at event" in shown
    assert "computed, bool; computed from amount, limit at event" in shown
    assert "entity, dict; set by tool:assess at event" in shown
    (big,) = (variable for variable in told.variables if variable.name == "big")
    assert (big.value, big.inputs, big.history[-1].writer) == (
        True,
        ("amount", "limit"),
        "computed",
    )


def test_hook_functions_are_shown_with_their_results(told):
    calls = {
        (hook_label(point.hook, point.variable), point.tool.rpartition(":")[2]): point
        for point in told.points
    }
    assert calls["computed:share", "share"].value == 0.0
    assert calls["before_chat", "open_file"].outcome == "returned"
    closed = calls["after_chat", "close_file"]
    assert (closed.outcome, closed.went_on) == ("error", True)
    assert "the cabinet is locked" in str(closed.error)
    shown = page(told)
    assert "  hooks.desk:share computes share: returned 0.0 (1.00 s)" in shown
    assert "close_file (after_chat): failed: ValueError at tools/desk.py:33: the cabinet" in shown
    assert "the cabinet is locked; the run continued without it" in shown
    assert [tool.tool for tool in told.turns[0].tools] == ["assess", "shop_stock", "sign"]


def test_changes_of_hooks_are_shown_before_and_after(told):
    edits = {
        (turn.agent, use.tool.rpartition(":")[2]): use.edits
        for turn in told.turns
        for use in turn.points
    }
    (system,) = edits["Desk", "brief"]
    assert (system.what, system.after) == ("system", f"{system.before} Be brief.")
    (messages,) = edits["Closer", "forget"]
    assert (messages.what, len(messages.before), len(messages.after)) == ("messages", 5, 3)
    (last,) = edits["Closer", "shout"]
    assert (last.what, last.after) == ("last", last.before.upper())
    (reply,) = edits["Clerk", "polite"]
    assert (reply.before, reply.after) == ("I hand you over.", "Dear user, I hand you over.")
    assert edits["Clerk", "broken"] == ()
    assert told.turns[2].sent == "Dear user, I hand you over."
    shown = page(told)
    assert "polite (process_message_before_send): changed the reply (1.00 s)" in shown
    assert "         before: I hand you over.\n" in shown
    assert '     says after its hooks "Dear user, I hand you over."' in shown


def test_a_turn_shows_the_messages_as_they_were_sent(run):
    turn = inspect_turn(run.workflow, run.run, run.events, 4)
    (prompt,) = turn.prompts
    assert prompt.same
    assert [message["content"] for message in prompt.messages][
        -1
    ] == "CLERK: DEAR USER, I HAND YOU OVER."
    assert prompt.edited == ("hooks/desk.py:forget", "hooks/desk.py:shout")
    shown = turn_page(turn, Streams())
    assert "Sent in call 1 after hooks/desk.py:forget, hooks/desk.py:shout\n" in shown
    assert "    CLERK: DEAR USER, I HAND YOU OVER.\n" in shown
    plain = inspect_turn(run.workflow, run.run, run.events, 3)
    assert (plain.prompts[0].edited, plain.prompts[0].same) == ((), True)
    assert "Sent in call" not in turn_page(plain, Streams())


def test_changes_of_hooks_are_compared_between_turns(run):
    first, second = (inspect_turn(run.workflow, run.run, run.events, number) for number in (1, 2))
    compared = compare_turns(first, second)
    (sent,) = (slice_ for slice_ in compared.slices if slice_.kind == "sent")
    assert "+system: amount: 300 Be brief." in sent.diff
    assert "sent after hooks: changed\n" in comparison_page(compared, Streams())


def test_questions_surfaces_and_results_are_shown_under_their_call(told):
    assess = told.turns[0].tools[0]
    (asked,) = assess.consulted
    assert (asked.text, asked.model) == ("low", "m")
    (surface,) = assess.surfaces
    assert (surface.tool, surface.component, surface.mode) == ("board", "Board", "artifact")
    assert surface.payload == {"rating": "low"}
    assert assess.progress == (1.0, "done")
    assert told.spent.calls == 9, "six turns' calls, two judgements, one question of a tool"
    (again,) = assess.fetched
    assert (again.origin, again.how) == ("rate", "found")
    shown = page(told)
    assert "         fetched rate from external rates.rate, as it was kept" in shown
    assert '         asked m, which said "low"\n' in shown
    assert '         showed board with Board (artifact): {"rating": "low"}\n' in shown
    assert "         reached 50% counting\n" in shown


def test_judgements_are_shown_with_their_reasons(told):
    first, second = told.turns[0].judged + told.turns[1].judged
    assert (first.holds, first.verdict) == (False, "no, because Not yet")
    assert (second.holds, second.target, second.agent) == (True, "Clerk", "Desk")
    (handed,) = told.turns[1].handoffs
    assert [item.verdict for item in handed.evaluated] == ["yes, because The user says so"]
    (kept,) = told.turns[0].handoffs
    assert [item.verdict for item in kept.evaluated] == ["no, because Not yet", "always"]
    assert "     judged whether the user is content: yes, because The user says so\n" in page(told)


def test_written_documents_and_errors_are_shown(told):
    (written,) = told.documents
    assert (written.name, written.error) == ("claim", "")
    full = PlayDocuments()
    full.full = True
    run = played(documents=full)
    failed = inspect_run(run.workflow, run.run, run.events)
    assert failed.outcome == "failed"
    assert failed.documents[0].error == "the disk is full"
    assert "  the document of claim was not written: the disk is full (as of event" in page(failed)


def test_handoff_chosen_by_the_model_is_shown():
    def choosing(request):
        if request.agent == "Clerk" and not request.question:
            return call("hand_off_to_Closer")
        return say(request)

    run = played(FunctionModel(choosing))
    turn = inspect_run(run.workflow, run.run, run.events).turns[2]
    assert [(handoff.target, handoff.why, handoff.evaluated) for handoff in turn.handoffs] == [
        ("Closer", "chosen", ())
    ]
    assert [tool.tool for tool in turn.tools] == ["hand_off_to_Closer"]
    assert "Clerk -> Closer, because its model chose so" in page(
        inspect_run(run.workflow, run.run, run.events)
    )


def test_ending_run_shows_its_outcome(run):
    at = next(event.seq for event in run.events if isinstance(event.data, RunEnding))
    told = inspect_run(run.workflow, run.run, run.events[: at + 1])
    assert told.ending is not None
    assert (told.status, told.ending.outcome) == ("running", "completed")
    assert "  about to end, completed: Closer ended the run\n" in page(told)


def test_function_that_stops_its_turn_is_shown():
    spec = outside_spec()
    hooks = tuple(
        hook.model_copy(update={"on_error": "stop"}) if hook.function == "broken" else hook
        for hook in spec.hooks
    )
    run = played(spec=spec.model_copy(update={"hooks": hooks}))
    failure = run.at(TurnFailed).data
    assert (failure.kind, failure.agent) == ("hook", "Clerk")
    told = inspect_run(run.workflow, run.run, run.events)
    (broken,) = (point for point in told.turns[2].points if point.tool.endswith("broken"))
    assert not broken.went_on
    assert "all went on" not in page(told).partition("broken (process_message")[2].splitlines()[0]
    assert "ending" not in (told.reason or "")


def test_a_source_without_a_default_fails_its_turn_and_says_why():
    spec = outside_spec()
    risk = spec.variables["risk"]
    bare = risk.model_copy(update={"source": risk.source.model_copy(update={"default": None})})
    run = played(spec=spec.model_copy(update={"variables": {**spec.variables, "risk": bare}}))
    told = inspect_run(run.workflow, run.run, run.events)
    assert [(item.origin, item.how) for item in told.turns[0].fetched] == [
        ("rate", "found"), ("risk", "error"),
    ]  # fmt: skip
    assert told.turns[0].error == "risk could not be read: rates.example answered 503"
    assert "     fetched risk could not be read: rates.example answered 503\n" in page(told)


def test_everything_is_decided_again_the_same(run):
    assert check_replay(run.workflow, run.run, run.events) == []
    events = list(run.events)
    at = next(i for i, event in enumerate(events) if isinstance(event.data, ToolFailed))
    events[at] = events[at]._replace(data=replace(events[at].data, error="another"))
    assert check_replay(run.workflow, run.run, events) == [], "why it failed decides nothing here"
    at = next(i for i, event in enumerate(events) if isinstance(event.data, ConditionJudged))
    events[at] = events[at]._replace(data=replace(events[at].data, holds=True))
    found = check_replay(run.workflow, run.run, events)
    assert found[0].seq == at + 2
    assert found[0].what == "something else would follow"


def test_a_recorded_run_answers_tools_and_rules_too(run):
    again = played(RecordedModel("r1", run.events))
    assert again.events[-1].data == RunEnded("completed", "Closer ended the run")
    for kind in (ModelConsulted, ConditionJudged, ModelReplied):
        texts = [
            [event.data.text for event in one.events if isinstance(event.data, kind)]
            for one in (run, again)
        ]
        assert texts[0] == texts[1], kind
        assert {event.data.answerer for event in again.events if isinstance(event.data, kind)} == {
            "replay"
        }


def test_changed_question_is_reported():
    code = {**CODE, "tools/desk.py": CODE["tools/desk.py"].replace(b"How risky", b"How bad")}
    first = played()

    async def scenario():
        host = host_for(
            outside_spec(), RecordedModel("r1", first.events), code=code, clock=Seconds(),
            outside=outside(),
        )  # fmt: skip
        async with host:
            return await read(host, await talk(host, ADA, "r1"))

    again = asyncio.run(asyncio.wait_for(scenario(), 30))
    failure = again.at(ToolFailed).data
    assert "a tool of Desk asks in turn 1 what run r1 has no recorded answer for" in failure.error


def test_missing_judgement_is_shown(run):
    silent = [event for event in run.events if not isinstance(event.data, ConditionJudged)]
    again = played(RecordedModel("r1", silent))
    judged = again.at(ConditionJudged).data
    assert "run r1 has no judgement of a rule of Desk after event" in judged.error


def test_a_judgement_that_failed_fails_again():
    def silent(request):
        if request.question and "Condition" in request.messages[-1]["content"]:
            raise ModelError("it is busy")
        return say(request)

    first = played(FunctionModel(silent))
    fault = first.at(ConditionJudged).data.error
    assert fault == "the model gave no answer: it is busy"
    told = inspect_run(first.workflow, first.run, first.events)
    assert f"     could not judge whether the user is content: {fault}" in page(told)
    again = played(RecordedModel("r1", first.events))
    assert again.at(ConditionJudged).data.error == f"the model gave no answer: recorded: {fault}"


@pytest.mark.parametrize("turn", [1, 2, 3, 4])
async def test_a_fork_that_calls_its_functions_anew_is_decided_again_the_same(turn):
    host = host_for(outside_spec(), model(), code=CODE, clock=Seconds(), outside=outside())
    async with host:
        child = await host.fork(await talk(host, ADA, "r1"), scope=ADA, turn=turn)
        await host.settled(child, scope=ADA)
        child = await read(host, child)
    assert check_replay(child.workflow, child.run, child.events) == []
    told = inspect_run(child.workflow, child.run, child.events)
    assert told.turns[turn - 1].points
    assert "run r1" in page(told)
