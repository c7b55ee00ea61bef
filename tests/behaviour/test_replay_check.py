"""Every journal a host writes can be taken again; whatever was changed in one is found."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic_core import to_json

from support.inspection_play import (
    SHOP_CODE,
    answer,
    failing_run,
    form_run,
    shop,
    shop_run,
)
from support.run_play import ADA, linked, play
from weft.engine.events import ContextAssembled as Assembled
from weft.engine.events import (
    HandedOff,
    ModelReplied,
    RequestOpened,
    RunEnded,
    TurnEnded,
    TurnStarted,
    VariableSet,
)
from weft.engine.events.codec import decode, encode
from weft.engine.reduce import fold
from weft.inspect.replay import MOST_MISMATCHES, check_replay
from weft.inspect.steps import steps
from weft.runtime.signals import Stop
from weft.testing.models import FunctionModel, ScriptedModel, call


async def stop(host, run):
    await host.deliver(run, Stop(), scope=ADA)


async def fork(host, run):
    return await host.fork(run, scope=ADA, turn=1, values={"order": "B2"})


async def fork_twice(host, run):
    child = await fork(host, run)
    await host.settled(child, scope=ADA)
    return await host.fork(child, scope=ADA, turn=2)


def talk(after=None):
    return play(shop(), FunctionModel(lambda entry: f"{entry.agent}"), code=SHOP_CODE, after=after)


PLAYS = {
    "tools, questions and a chat": shop_run,
    "refused replies, refused values and an automatic tool": form_run,
    "a value a trigger sets from an argument": lambda: form_run(age=30),
    "a failed model": failing_run,
    "waiting for a message": talk,
    "a second message": lambda: talk(answer),
    "stopped": lambda: talk(stop),
    "a fork": lambda: talk(fork),
    "a fork of a fork": lambda: talk(fork_twice),
    "waiting for an answer": lambda: play(
        shop(), ScriptedModel(["on", call("confirm", question="?")]), code=SHOP_CODE
    ),
}


def check(played):
    return check_replay(played.workflow, played.run, played.events)


@pytest.fixture(scope="module")
def shopping():
    return shop_run()


def changed(played, event, **changes):
    """The same journal with other data in one event."""
    events = [*played.events]
    events[event.seq - 1] = event._replace(data=replace(event.data, **changes))
    return replace(played, events=events)


@pytest.mark.parametrize("name", PLAYS)
def test_every_journal_can_be_taken_again(name):
    played = PLAYS[name]()
    assert check(played) == []
    stored = [
        event._replace(data=decode(type(event.data).__name__, encode(event.data)))
        for event in played.events
    ]
    assert check(replace(played, events=stored)) == []


def test_another_target_is_found(shopping):
    event = shopping.at(HandedOff, 1)
    (found, *_) = check(changed(shopping, event, target="terminate"))
    assert (found.seq, found.what) == (event.seq, "something else would follow")
    assert (found.expected["data"]["target"], found.found["data"]["target"]) == (
        "user",
        "terminate",
    )
    assert found.found["kind"] == "HandedOff"


def test_another_prompt_is_found(shopping):
    event = shopping.at(Assembled, 1)
    (found,) = check(changed(shopping, event, digest="0" * 64))
    assert (found.seq, found.what) == (event.seq, "Helper would be sent something else")
    assert found.expected["data"]["digest"] == event.data.digest
    assert "manifest" not in found.found["data"]


def test_other_manifest_alone_is_not_a_difference(shopping):
    assert check(changed(shopping, shopping.at(Assembled), manifest={})) == []


def test_another_reply_leads_elsewhere(shopping):
    event = shopping.at(ModelReplied)
    (found, *_) = check(changed(shopping, event, text="nobody"))
    assert (found.seq, found.expected["kind"]) == (event.seq + 1, "TurnEnded")
    assert found.found["kind"] == "VariableSet"


def test_another_value_is_seen_in_the_next_prompt(shopping):
    event = next(event for event in shopping.events if getattr(event.data, "value", None) == "A1")
    found = check(changed(shopping, event, value="B2"))
    assert [event.seq for event in found] == [
        each_event.seq
        for each_event in shopping.events
        if isinstance(each_event.data, Assembled) and each_event.seq > event.seq
    ]


@pytest.mark.parametrize("change", [{"cause": 99}, {"actor": "user:eve"}])
def test_another_cause_or_actor_is_found(shopping, change):
    event = shopping.at(TurnStarted)
    events = [*shopping.events]
    events[event.seq - 1] = event._replace(**change)
    (found,) = check(replace(shopping, events=events))
    assert found.seq == event.seq


def test_a_missing_event_is_found(shopping):
    place = shopping.at(HandedOff).seq
    events = [*shopping.events[: place - 1], *shopping.events[place:]]
    (found, *_) = check(replace(shopping, events=events))
    assert (found.seq, found.what, found.found) == (place, "an event is missing", place + 1)


@pytest.mark.parametrize("kind", [TurnStarted, TurnEnded, HandedOff, RunEnded, RequestOpened])
def test_a_journal_that_ends_too_soon_is_found(shopping, kind):
    place = shopping.at(kind).seq
    (found,) = check(replace(shopping, events=shopping.events[: place - 1]))
    assert (found.seq, found.expected["kind"], found.found) == (place, kind.__name__, None)


def test_unreachable_parts_are_found(shopping):
    waiting = play(shop(), ScriptedModel(["on", "what?"]), code=SHOP_CODE)
    last = waiting.events[-1]
    added = last._replace(seq=last.seq + 1, data=VariableSet("found", True, "trigger"))
    (found,) = check(replace(waiting, events=[*waiting.events, added]))
    assert (found.seq, found.what, found.expected) == (
        added.seq,
        "this would not follow any more",
        None,
    )
    outside = added._replace(actor="user:ada", data=VariableSet("found", True, "edit"))
    assert check(replace(waiting, events=[*waiting.events, outside])) == []


def test_another_package_decides_otherwise(shopping):
    handoffs = [
        {"source_agent": "Router", "target_agent": "user"},
        {"source_agent": "Helper", "target_agent": "terminate"},
    ]
    other = linked(shop(handoffs=handoffs), SHOP_CODE)
    found = check(replace(shopping, workflow=other))
    assert [
        (item.expected["data"]["target"], item.found["data"]["target"]) for item in found[:2]
    ] == [
        ("user", "Helper"),
        ("terminate", "user"),
    ]


def test_a_package_without_the_agent_cannot_take_it_again(shopping):
    views = {"Router": shopping.workflow.views["Router"]}
    other = replace(shopping.workflow, views=views)
    (found,) = check(replace(shopping, workflow=other))
    assert found.seq == shopping.at(TurnStarted, 1).seq
    assert found.found["data"]["agent"] == "Helper"


def test_a_condition_without_an_answer_is_found(shopping):
    handoffs = [
        {"source_agent": "Router", "target_agent": "Helper", "condition": "shop > 3"},
    ]
    other = linked(shop(handoffs=handoffs), SHOP_CODE)
    (found,) = check(replace(shopping, workflow=other))
    assert found.expected["kind"] == "RunEnded"
    assert "a rule of Router could not be evaluated" in found.expected["data"]["reason"]


def test_an_engine_that_remembers_is_found(shopping, monkeypatch):
    handlers = shopping.workflow.compiled.handlers
    handler, check_ = handlers[RunEnded]
    ends = []

    def forgetful(compiled, state, event, data):
        ends.append(event)
        commands = handler(compiled, state, event, data)
        state.reason = str(len(ends))
        return commands

    monkeypatch.setitem(handlers, RunEnded, (forgetful, check_))
    (found,) = check(shopping)
    assert found.what == "folding the journal twice gives two states"


def test_at_most_the_first_errors_are_reported():
    talked = long_talk()
    events = [
        event._replace(data=replace(event.data, digest=""))
        if isinstance(event.data, Assembled)
        else event
        for event in talked.events
    ]
    assert sum(isinstance(event.data, Assembled) for event in events) > MOST_MISMATCHES
    assert len(check(replace(talked, events=events))) == MOST_MISMATCHES


def long_talk():
    async def chat(host, run):
        for _ in range(MOST_MISMATCHES):
            await answer(host, run)
            await host.settled(run, scope=ADA)

    return talk(chat)


def test_a_value_that_would_be_refused_is_found(shopping):
    sets = [event for event in shopping.events if isinstance(event.data, VariableSet)]
    event = next(set_ for set_ in sets if set_.data.name == "found")
    found = check(changed(shopping, event, value="no bool"))
    assert (found[0].seq, found[0].expected) == (event.seq, None)
    assert "this would be refused: found" in found[0].what


def test_differences_fit_json(shopping):
    found = check(changed(shopping, shopping.at(HandedOff), target="terminate"))
    assert to_json(found)


@given(st.data())
def test_whatever_is_cut_or_swapped_is_found(data):
    played = shared_run()
    events = played.events
    first = data.draw(st.integers(0, len(events) - 2))
    second = data.draw(st.integers(first + 1, len(events) - 1))
    # What comes from outside might as well have come in another order.
    assume("engine" in (events[first].actor, events[second].actor))
    swapped = [*events]
    swapped[first] = events[second]._replace(seq=first + 1)
    swapped[second] = events[first]._replace(seq=second + 1)
    assert check(replace(played, events=swapped)) != []


_KEPT: list = []


def shared_run():
    if not _KEPT:
        _KEPT.append(shop_run())
    return _KEPT[0]


@pytest.mark.parametrize("name", ["tools, questions and a chat", "a fork of a fork"])
def test_steps_stand_between_the_states_of_the_prefixes(name):
    played = PLAYS[name]()
    compiled, run = played.workflow.compiled, played.run
    taken = list(steps(compiled, run, played.events))
    assert [step.event for step in taken] == played.events
    for step in taken:
        after = fold(compiled, step.after.run, played.events[: step.event.seq])
        assert step.after == after
    assert taken[0].before.seq == 0
    assert taken[-1].after.run == run
