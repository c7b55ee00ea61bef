"""Agents side by side: fork, threads and variables of their own, every way to merge, failures."""

from dataclasses import replace
from itertools import permutations

import pytest

from support.engine_play import Play, workflow
from weft.engine.commands import CallModel, CallTool, Start
from weft.engine.events import (
    Event,
    Forked,
    HandedOff,
    Joined,
    ModelFailed,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    StopRequested,
    TimerFired,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.engine.reduce import fold, pending, reduce
from weft.engine.rows import RequestRow, batch
from weft.engine.state import Activation, Group, OwnValues, State
from weft.engine.timers import NEVER

MEMBERS = ("A", "B", "C")
FORK = 4


def says(agent: str, word: str, value: object) -> dict[str, object]:
    return {"type": "agent_text", "agent": agent, "match": {"contains": word}, "value": value}


def derived(type_: str, default: object = None, *triggers: object) -> dict[str, object]:
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source}


VARIABLES = {
    "chosen": derived("str", "nobody", *(says(member, "choose", member) for member in MEMBERS)),
    "asked": derived("str", "", {"type": "ui_response", "tool": "look", "response_key": "topic"}),
    "looked": derived("bool", False, {"type": "tool_response", "tool": "look"}),
    "tired": derived("bool", False, {"type": "agent_turn_count", "agent": "B", "count": 1}),
}


def group_of(members=MEMBERS, *, limits=None, models=None, **group):
    """Return a workflow that begins with a group and goes on with a judge."""
    return workflow(
        agents=(*members, "Judge"),
        variables=VARIABLES,
        tools=[{"agent": "B", "function": "look"}],
        handoffs=[{"source_agent": "Judge", "target_agent": "user"}],
        orchestrator={
            "initial_agent": "Panel",
            "parallel": [{"name": "Panel", "members": members, "next": "Judge", **group}],
            **(limits or {}),
        },
        **(models or {}),
    )


def begun(members=MEMBERS, **group) -> Play:
    play = Play(group_of(members, **group))
    play.start("hello")
    return play


def texts(log) -> list[tuple[str, str]]:
    return [(entry.agent, entry.text) for entry in log]


def spoken(play: Play) -> list[tuple[str, str]]:
    """Return what was said in the conversation after the user's first words."""
    return texts(play.state.messages)[1:]


def fired(play: Play) -> None:
    (timer,) = play.state.timers
    play.take(TimerFired(timer), turn=0)


def test_a_handoff_to_a_group_starts_all_its_members():
    play = begun()
    assert play.kinds()[3:] == ["Forked", *["TurnStarted", "ContextAssembled"] * 3]
    assert play.events[FORK - 1].data == Forked("Panel", MEMBERS)
    assert [
        (event.turn, event.data) for event in play.events if isinstance(event.data, TurnStarted)
    ] == [(number, TurnStarted(agent, FORK)) for number, agent in enumerate(MEMBERS, start=1)]
    assert [(effect.agent, effect.turn) for effect in play.effects] == [
        ("A", 1),
        ("B", 2),
        ("C", 3),
    ]
    assert play.state.groups == {FORK: Group(FORK, "Panel", MEMBERS, 1, (1, 2, 3))}
    assert play.state.turn is play.state.active[3]


def test_members_hear_the_conversation_up_to_the_fork_and_themselves():
    play = begun()
    play.reply("", ToolRequest("c1", "nope", {}), turn=1)
    play.reply("second", turn=2)
    heard = {turn: texts(play.state.thread_of(turn))[1:] for turn in (0, 1, 2, 3)}
    assert heard[0] == heard[3] == []
    assert heard[1] == [("A", ""), ("A", "error: there is no tool nope; available: none")]
    assert heard[2] == [("B", "second")]
    play.reply("third", turn=3)
    play.reply("first", turn=1)
    assert [item for item in spoken(play) if item[1]] == [
        ("A", "error: there is no tool nope; available: none"),
        ("A", "first"),
        ("B", "second"),
        ("C", "third"),
    ]
    assert play.state.threads == {}


def test_members_have_the_variables_for_themselves_until_the_group_joins():
    play = begun()
    play.reply("I choose", turn=2)
    assert [play.state.values_of(number)["chosen"] for number in (0, 1, 2, 3)] == [
        "nobody", "nobody", "B", "nobody",
    ]  # fmt: skip
    assert play.state.set_by == {}
    play.take(VariableSet("chosen", "me", "tool:look"), turn=1)
    play.reply("x", turn=3)
    assert play.state.variables["chosen"] == "nobody"
    assert (play.state.values_of(1)["chosen"], play.state.values_of(2)["chosen"]) == ("me", "B")
    play.reply("x", turn=1)
    assert play.state.variables["chosen"] == "me", "of two who set it, the one that began first"
    where = next(
        event.seq
        for event in play.events
        if isinstance(event.data, VariableSet) and event.data.value == "me"
    )
    assert play.state.set_by["chosen"] == where
    (refused,) = (event for event in play.events if isinstance(event.data, VariableRefused))
    assert (refused.turn, refused.data.writer) == (2, "agent:B")
    assert refused.data.error == (
        "A has set it in parallel; declare merge for it, or let only one set it"
    )


def test_prompt_values_stay_until_the_model_answers():
    play = begun()
    play.take(VariableSet("chosen", "me", "tool:look"), turn=1)
    active = play.state.active[1]
    assert active.shown is not None
    assert (active.shown["chosen"], play.state.values_of(active.number)["chosen"]) == (
        "nobody",
        "me",
    )
    play.reply("", ToolRequest("c1", "nope", {}), turn=1)
    assert play.state.active[1].shown["chosen"] == "me", "the next call is shown what is new"
    play.reply("x", turn=1)
    assert play.state.active[1].shown is None


REPLIES = {"A": "I choose yes", "B": "I choose no", "C": "I choose yes"}


def outcome(play: Play) -> tuple[object, ...]:
    """Return a state without the numbers of the events that led to it."""
    state = play.state.copy()
    messages = [message._replace(seq=0) for message in state.messages]
    state.messages, state.seq, state.requests = (), 0, {}
    state.set_by = dict.fromkeys(state.set_by, 0)
    state.active = {key: value.replace(seq=0, shown=None) for key, value in state.active.items()}
    return messages, state


@pytest.mark.parametrize("merge", ["concatenate", "majority", "collect"])
@pytest.mark.parametrize("failing", ["", "B"])
def test_it_makes_no_difference_who_is_faster(merge, failing):
    """With tools, questions and values that two members set: each order ends in the same state."""
    outcomes = []
    for order in permutations(MEMBERS):
        play = begun(merge=merge, on_failure="continue")
        (call,) = play.reply("", ToolRequest("c1", "look", {}), turn=2)
        play.take(RequestOpened("q", "ui", "B", tool="look", call=call.id), turn=2)
        for agent in order:
            turn = MEMBERS.index(agent) + 1
            if agent == "B":
                play.take(RequestAnswered("q", {"topic": "y"}, "user"), turn=2)
                play.take(ToolReturned("c1", "found"), turn=2)
            if agent == failing:
                play.take(ModelFailed(play.state.active[turn].call, "down"), turn=turn)
            else:
                play.reply(REPLIES[agent], turn=turn)
        outcomes.append(outcome(play))
        assert play.state.turn.agent == "Judge"
    first, *others = outcomes
    assert all(other == first for other in others)
    values = first[1].variables
    if merge == "majority":
        assert (values["chosen"], values["looked"]) == ("A", False)
    else:
        assert (values["chosen"], values["looked"]) == ("A", not failing)


def test_concatenate_keeps_all_replies_in_member_order():
    play = begun()
    for turn, text in ((3, "three"), (1, "one"), (2, "two")):
        play.reply(text, turn=turn)
    assert spoken(play) == [("A", "one"), ("B", "two"), ("C", "three")]
    assert play.last(Joined) == Joined("Panel", FORK, (1, 2, 3))
    joined = next(event for event in play.events if isinstance(event.data, Joined))
    assert joined.turn == 0
    assert play.last(HandedOff) == HandedOff("Panel", "Judge", "joined")
    values = play.state.variables
    assert play.state.turn == replace(
        Activation("Judge", 4, phase=True),
        stage="model",
        seq=play.state.seq,
        shown=values,
        asked=values,
    )
    assert (play.state.groups, play.state.last_speaker) == ({}, ("Judge", 1))


def test_first_keeps_the_fastest_reply_and_cancels_the_others():
    play = begun(merge="first")
    (call,) = play.reply("I choose to look", ToolRequest("c1", "look", {}), turn=2)
    assert isinstance(call, CallTool)
    play.take(RequestOpened("q", "ui", "B", tool="look", call="c1"), turn=2)
    play.reply("I choose", turn=3)
    assert play.last(Joined) == Joined("Panel", FORK, (3,))
    assert spoken(play) == [("C", "I choose")]
    assert play.state.variables["chosen"] == "C"
    assert (play.state.calls, play.state.requests, play.state.threads) == ({}, {}, {})
    assert list(play.state.active) == [4]
    assert play.take(ToolReturned("c1", "late"), turn=2) == []
    assert "late" not in dict(spoken(play)).values()


@pytest.mark.parametrize(
    ("replies", "winner"),
    [
        (("no", "yes", "yes"), 2),
        (("yes", "no", "yes"), 1),
        (("one", "two", "three"), 1),
        (("no", "yes", "no"), 1),
    ],
)
def test_majority_keeps_the_reply_most_gave_and_of_several_the_first(replies, winner):
    play = begun(merge="majority")
    for turn in (3, 2, 1):
        play.reply(replies[turn - 1], turn=turn)
    assert play.last(Joined) == Joined("Panel", FORK, (winner,))
    assert spoken(play) == [(MEMBERS[winner - 1], replies[winner - 1])]


VOTE = {
    "models": [{"name": "Vote", "fields": {"yes": {"type": "bool"}, "n": {"type": "int"}}}],
    "registry": [{"agent": member, "model": "Vote"} for member in MEMBERS],
}


def test_structured_votes_are_the_same_whatever_the_order_of_their_fields():
    play = begun(merge="majority", models=VOTE)
    play.reply('{"yes": false, "n": 1}', turn=1)
    play.reply('{"yes": true, "n": 1}', turn=2)
    play.reply('{"n": 1, "yes": true}', turn=3)
    assert play.last(Joined).turns == (2,)


def test_collect_says_all_replies_as_one_object():
    play = begun(merge="collect", models={**VOTE, "registry": [{"agent": "A", "model": "Vote"}]})
    play.reply("I choose ü", turn=2)
    play.reply("x", turn=3)
    play.reply('{"yes": true, "n": 2}', turn=1)
    said = '{"A": {"yes": true, "n": 2}, "B": "I choose ü", "C": "x"}'
    assert play.last(Joined) == Joined("Panel", FORK, (1, 2, 3), said)
    assert spoken(play) == [("Panel", said)]
    assert play.state.variables["chosen"] == "B"


def merging() -> Play:
    play = begun(merge="custom", function="merges:join", on_failure="continue")
    play.reply("I choose", turn=1)
    play.take(ModelFailed(1, "down"), turn=2)
    play.reply("three", turn=3)
    return play


def test_custom_calls_a_function_with_the_replies():
    play = merging()
    call = play.effects[-1]
    assert call == CallTool(
        "merge-4", "Panel", 4, "merges:join", {"replies": {"A": "I choose", "C": "three"}},
        play.state.seq,
    )  # fmt: skip
    assert play.events[-1].data == ToolCalled("merge-4", "merges:join", call.arguments, auto=True)
    assert list(pending(play.compiled, play.state)) == [call]
    assert play.state.groups[FORK].turns == (1, 2, 3), "the function is no member"
    play.take(VariableSet("asked", "by the function", "tool:merges:join"), turn=4)
    play.take(ToolReturned("merge-4", {"all": 2}), turn=4)
    assert play.last(Joined) == Joined("Panel", FORK, (1, 3, 4), '{"all": 2}')
    assert spoken(play) == [("Panel", '{"all": 2}')]
    assert (play.state.variables["chosen"], play.state.variables["asked"]) == (
        "A", "by the function",
    )  # fmt: skip
    assert play.state.turn.agent == "Judge"


def test_a_text_that_a_function_makes_of_the_replies_stays_as_it_is():
    play = merging()
    play.take(ToolReturned("merge-4", "both agree"), turn=4)
    assert spoken(play) == [("Panel", "both agree")]


def test_a_function_that_does_not_merge_ends_the_run():
    play = merging()
    play.take(ToolFailed("merge-4", "ValueError: no"), turn=4)
    assert play.last(TurnFailed) == TurnFailed(
        "Panel", "merges:join did not merge the replies of Panel: ValueError: no", "tool"
    )
    assert play.state.outcome == "failed"
    assert play.state.reason.endswith("ValueError: no (in the group Panel)")


def test_a_run_fails_with_a_member():
    play = begun()
    play.reply("one", turn=1)
    play.take(ModelFailed(1, "down"), turn=2)
    assert play.last(TurnFailed) == TurnFailed("B", "the model of B failed: down", "model")
    assert play.state.reason == "the model of B failed: down (in the group Panel)"
    assert play.kinds()[-2:] == ["TurnFailed", "RunEnded"]
    state = play.state
    assert (state.active, state.groups, state.threads, state.timers) == ({}, {}, {}, {})


def test_group_continues_without_a_failed_member():
    play = begun(on_failure="continue")
    play.reply("I choose", ToolRequest("c1", "look", {}), turn=2)
    play.take(RequestOpened("q", "ui", "B", tool="look", call="c1"), turn=2)
    play.take(RequestExpired("q"), turn=2)
    assert play.state.active[2].stage == "model", "a tool that fails is told to the model"
    play.take(ModelFailed(2, "down"), turn=2)
    assert play.state.groups[FORK].failed == {2: "the model of B failed: down"}
    assert play.state.active.keys() == {1, 3}
    assert (play.state.calls, play.state.requests) == ({}, {})
    play.reply("one", turn=1)
    play.reply("three", turn=3)
    assert play.last(Joined) == Joined("Panel", FORK, (1, 3))
    assert spoken(play) == [("A", "one"), ("C", "three")]


def test_a_group_of_which_every_member_fails_ends_the_run():
    play = begun(("A", "B"), on_failure="continue")
    for turn, error in ((2, "late"), (1, "down")):
        play.take(ModelFailed(1, error), turn=turn)
    assert play.state.outcome == "failed"
    assert play.state.reason == (
        "every member of the group Panel failed: the model of B failed: late; "
        "the model of A failed: down"
    )


def test_a_deadline_is_a_timer_that_goes_with_its_group():
    before = Play(group_of(deadline_seconds=1.5)).state
    play = begun(deadline_seconds=1.5)
    at = play.events[FORK - 1].at + 1500
    assert play.events[FORK].data == TimerSet(f"deadline:{FORK}", at, "deadline")
    written = batch(before, play.state, play.events, id="b", held=True)
    assert (written.changes, written.due_at) == ((), at)
    middle = play.state
    for turn in (1, 2, 3):
        play.reply("x", turn=turn)
    assert play.state.timers == {}
    gone = batch(middle, play.state, play.events[-1:], id="c", held=True)
    assert (gone.changes, gone.due_at) == ((), NEVER)
    assert play.take(TimerFired(f"deadline:{FORK}"), turn=0) == []
    assert "TurnFailed" not in play.kinds()


@pytest.mark.parametrize("merge", ["concatenate", "first", "majority", "collect"])
def test_after_the_deadline_the_others_count(merge):
    play = begun(merge=merge, on_failure="continue", deadline_seconds=2)
    play.reply("", ToolRequest("c1", "look", {}), turn=2)
    play.take(RequestOpened("q", "ui", "B", tool="look", call="c1"), turn=2)
    if merge != "first":
        play.reply("one", turn=1)
    fired(play)
    late = [event for event in play.events if isinstance(event.data, TurnFailed)]
    if merge == "first":
        assert play.state.reason.startswith("every member of the group Panel failed: ")
        return
    assert [(event.turn, event.data) for event in late] == [
        (2, TurnFailed("B", "B did not finish within 2 s", "deadline")),
        (3, TurnFailed("C", "C did not finish within 2 s", "deadline")),
    ]
    assert play.last(Joined).turns == (1,)
    assert (play.state.requests, play.state.calls, play.state.timers) == ({}, {}, {})


def test_after_the_deadline_a_run_fails_with_the_first_who_is_late():
    play = begun(deadline_seconds=2)
    play.reply("one", turn=1)
    fired(play)
    assert play.kinds()[-3:] == ["TimerFired", "TurnFailed", "RunEnded"]
    assert play.state.reason == "B did not finish within 2 s (in the group Panel)"


def test_a_deadline_is_for_the_members_and_not_for_the_function_that_merges():
    play = begun(("A", "B"), merge="custom", function="m:f", deadline_seconds=2)
    play.reply("one", turn=1)
    play.reply("two", turn=2)
    fired(play)
    assert (play.state.timers, play.state.outcome) == ({}, None)
    play.take(ToolReturned("merge-3", "merged"), turn=3)
    assert spoken(play) == [("Panel", "merged")]


def test_a_run_with_a_group_waits_when_all_it_has_is_questions():
    play = begun()
    play.reply("", ToolRequest("c1", "look", {}), turn=2)
    play.take(RequestOpened("q", "ui", "B", tool="look", call="c1"), turn=2)
    assert play.state.status == "running"
    play.reply("one", turn=1)
    before = play.state
    play.reply("three", turn=3)
    assert play.state.status == "waiting"
    assert list(pending(play.compiled, play.state)) == []
    assert batch(before, play.state, play.events[-1:], id="b").due_at == NEVER
    play.take(RequestAnswered("q", {"topic": "y"}, "user"), turn=2)
    assert play.state.status == "running"
    assert (play.state.variables["asked"], play.state.values_of(2)["asked"]) == ("", "y")


def test_a_question_of_a_member_is_a_row_and_closed_with_its_turn():
    play = begun(merge="first")
    play.reply("", ToolRequest("c1", "look", {}), turn=2)
    before = play.state
    play.take(RequestOpened("q", "ui", "B", tool="look", call="c1"), turn=2)
    (row,) = batch(before, play.state, play.events[-1:], id="b").changes
    assert isinstance(row, RequestRow)
    assert (row.id, row.agent, play.state.requests["q"].turn) == ("q", "B", 2)


def test_turns_of_members_are_counted():
    play = begun()
    play.reply("x", turn=2)
    assert play.kinds()[-2:] == ["TurnEnded", "VariableSet"]
    assert play.state.values_of(2)["tired"] is True
    assert play.state.variables["tired"] is False
    assert play.state.turn_counts == {"A": 1, "B": 1, "C": 1}
    play.reply("x", turn=1)
    play.reply("x", turn=3)
    assert play.state.variables["tired"] is True


def test_a_run_that_is_asked_to_stop_stops_when_its_group_has_joined():
    play = begun()
    play.take(StopRequested("after_turn", "ada"), turn=0)
    for turn in (1, 2, 3):
        assert play.state.outcome is None
        play.reply("x", turn=turn)
    assert (play.state.outcome, play.state.reason) == (
        "cancelled", "stopped on request after the turn",
    )  # fmt: skip
    assert play.kinds()[-2:] == ["Joined", "RunEnded"]


def test_no_group_begins_when_the_turns_are_used_up():
    again = [{"source_agent": "Judge", "target_agent": "Panel"}]
    compiled = workflow(
        agents=(*MEMBERS, "Judge"),
        handoffs=again,
        orchestrator={
            "initial_agent": "Panel",
            "max_turns": 4,
            "parallel": [{"name": "Panel", "members": MEMBERS, "next": "Judge"}],
        },
    )
    play = Play(compiled)
    play.start()
    for turn in (1, 2, 3, 4):
        play.reply("x", turn=turn)
    assert (play.state.outcome, play.state.turns) == ("max_turns", 4)


def test_a_restart_starts_the_members_that_have_not_begun():
    play = begun()
    cut = next(number for number, event in enumerate(play.events) if event.turn == 2)
    state = fold(play.compiled, "r", play.events[:cut])
    commands = list(pending(play.compiled, state))
    assert [command for command in commands if isinstance(command, Start)] == [
        Start("B", FORK),
        Start("C", FORK),
    ]
    assert isinstance(commands[0], CallModel)


def test_late_results_of_members_change_nothing():
    play = begun(merge="first")
    play.reply("done", turn=1)
    for data in (TurnEnded("B"), TurnFailed("B", "x", "model"), Joined("Panel", FORK, (2,))):
        late = Event(play.state.seq + 1, 0, "t", 0, 2, data)
        after, commands = reduce(play.compiled, play.state, late)
        after.seq = play.state.seq
        assert (after, commands) == (play.state, [])


def test_a_turn_of_a_group_that_has_joined_does_not_begin():
    play = begun(merge="first")
    play.reply("done", turn=1)
    late = Event(play.state.seq + 1, 0, "t", 0, 9, TurnStarted("B", FORK))
    after, commands = reduce(play.compiled, play.state, late)
    assert (after.active, commands) == (play.state.active, [])


@pytest.mark.parametrize(
    ("rest", "started"),
    [
        ({}, ("Redundant", ("A", "B"))),
        ({"handoffs": [{"source_agent": "A", "target_agent": "B"}]}, None),
        ({"agents": ("A", "B")}, None),
    ],
)
def test_the_pattern_redundant_is_a_group_unless_rules_say_otherwise(rest, started):
    play = Play(
        workflow(**{"agents": MEMBERS, **rest}, orchestrator={"orchestration_pattern": "Redundant"})
    )
    play.start()
    forks = [event.data for event in play.events if isinstance(event.data, Forked)]
    assert forks == ([Forked(*started)] if started else [])
    if started:
        play.reply("two", turn=2)
        play.reply("one", turn=1)
        assert play.last(HandedOff) == HandedOff("Redundant", "C", "joined")


def test_a_group_without_a_next_comes_to_rest_like_an_agent():
    for settings, target in (
        ({}, "user"),
        ({"human_in_the_loop": False}, "terminate"),
        ({"default_target": "Judge"}, "Judge"),
    ):
        play = begun(("A", "B"), next=None, limits=settings)
        play.reply("one", turn=1)
        play.reply("two", turn=2)
        assert play.last(HandedOff).target == target


def test_after_a_group_the_user_answers_to_the_group():
    play = begun(("A", "B"), next="user")
    play.reply("one", turn=1)
    play.reply("two", turn=2)
    assert play.state.status == "waiting"
    play.say("again")
    assert play.kinds().count("Forked") == 2
    assert list(play.state.active) == [3, 4]


def test_values_of_a_member_are_previewed_to_this_member_only():
    state = State("run", variables={"n": 1}, own={4: OwnValues({"n": 1}, {})})
    state.preview_values(4, {"n": 2})
    assert (state.values_of(4), state.values_of(0)) == ({"n": 2}, {"n": 1})
