"""What holds for every run that a host brings about, whatever is said and answered."""

import asyncio
import tempfile
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.group_play import CODE as TEAM_CODE
from support.group_play import MEMBERS, team
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.context.prompt import digest_of
from weft.engine.events import (
    KIND_NAMES,
    ContextAssembled,
    ModelReplied,
    RequestAnswered,
    RunStarted,
    ToolReturned,
    TurnEnded,
    VariableSet,
)
from weft.engine.events.codec import decode, encode
from weft.engine.reduce import fold, reduce
from weft.engine.state import State
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, call

ADA = Scope("app", "ada")
CODE = {
    "tools/work.py": b'''
from weft import Ask, Refuse, use_ui_tool


def count(context_variables, by: int = 1) -> int:
    """Count on."""
    context_variables.set("total", context_variables.get("total", 0) + by)
    return context_variables.get("total")


def refuse() -> str:
    """Decline."""
    raise Refuse("not today")


async def ask(what: str) -> str:
    """Ask, and wait."""
    return str(await use_ui_tool("ask", what))


def ask_first(what: str, context_variables) -> str:
    """Ask, and be called again."""
    if not context_variables.answers:
        raise Ask(what)
    return str(context_variables.answers[0])
'''
}


def _spec():
    common = {"agent": "Clerk", "file": "work.py", "description": "d"}
    shown = {"tool_type": "UI_Tool", "ui": {"component": "Pick", "mode": "inline"}}
    text = {"type": "agent_text", "agent": "Clerk", "match": {"contains": "over"}}
    answer = {"type": "ui_response", "tool": "ask", "response_key": "pick"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", "initial_agent": "Clerk", "max_turns": 6},
            "agents": [{"agent_name": "Clerk"}, {"agent_name": "Boss"}],
            "variables": {
                "total": {"type": "int", "source": {"type": "derived", "default": 0}},
                "picked": {"type": "str", "source": {"type": "derived", "triggers": [answer]}},
                "over": {
                    "type": "bool",
                    "source": {"type": "derived", "default": False, "triggers": [text]},
                },
            },
            "tools": [
                *(
                    {"tool_type": "Agent_Tool", "function": name, **common}
                    for name in ("count", "refuse")
                ),
                *({"function": name, **shown, **common} for name in ("ask", "ask_first")),
            ],
            "handoffs": [
                {"source_agent": "Clerk", "target_agent": "Boss", "condition": "total > 2"},
                {"source_agent": "Clerk", "target_agent": "terminate", "condition": "over"},
                {"source_agent": "Clerk", "target_agent": "user"},
                {"source_agent": "Boss", "target_agent": "user"},
            ],
        }
    )


SPEC = _spec()

LINES = st.sampled_from(
    [
        "What else?",
        "It is over.",
        call("count"),
        call("count", by=3),
        [call("count"), call("nothing"), call("refuse")],
        call("refuse"),
        call("ask", what="tea"),
        call("ask_first", what="ale"),
        [call("ask", what="tea"), call("ask_first", what="ale"), call("count")],
        call("count", by="many"),
    ]
)
MOST_SIGNALS = 4
SIGNALS = st.lists(
    st.one_of(
        st.builds(UserMessage, st.just("go on")),  # each time another message
        st.sampled_from([Answer("", {"pick": "x"}), Answer("", "y"), Stop("after_turn")]),
    ),
    max_size=MOST_SIGNALS,
)
#: Which of the signals that were let in come again, each time the run has come to rest.
LATER = st.lists(
    st.lists(st.integers(0, MOST_SIGNALS - 1), max_size=3),
    min_size=MOST_SIGNALS,
    max_size=MOST_SIGNALS,
)
NEVER = ((),) * MOST_SIGNALS
SCRIPTS = st.lists(LINES, min_size=1, max_size=6)


def play(story):
    return asyncio.run(asyncio.wait_for(story, 30))


def model_of(script):
    """Answer by place in the conversation, so that it does not matter who asks or how often."""

    def reply(request):
        spoken = sum(message["role"] == "assistant" for message in request.messages)
        return script[spoken] if spoken < len(script) else "It is over."

    return FunctionModel(reply)


async def addressed(host, run, signal):
    """Return a signal as it is sent: an answer names its question."""
    if not isinstance(signal, Answer):
        return signal
    # Tools side by side ask in any order; the answer goes to the same one each time.
    asked = sorted(
        await host.requests(scope=ADA, run=run), key=lambda artifact: str(artifact.payload)
    )
    return Answer(asked[0].id if asked else "none", signal.value)


async def deliver(host, run, signal, times=1):
    """Deliver a signal as often as told, at once; return how often that was no fault."""

    async def once():
        try:
            await host.deliver(run, signal, scope=ADA)
        except UsageError:
            return 0
        return 1

    return sum(await asyncio.gather(*(once() for _ in range(times))))


def expect_once(signal, let_in, times):
    if isinstance(signal, Answer):
        assert let_in <= 1, "an answer is taken once, whichever process brings it"
    if isinstance(signal, UserMessage):
        assert let_in in (0, times), "a message that was heard is accepted from all"


async def lead(host, signals, times=1, run="run", later=NEVER):
    """Start a run and let signals in, each when the run has come to rest, and some again."""
    await host.start("Desk", scope=ADA, message="hi", run=run)
    await host.settled(run, scope=ADA)
    taken = []
    for signal, again in zip(signals, later, strict=False):
        sent = await addressed(host, run, signal)
        let_in = await deliver(host, run, sent, times)
        expect_once(sent, let_in, times)
        taken += [sent] if let_in else []
        await host.settled(run, scope=ADA)
        for number in again if taken else ():
            await repeat([host], run, taken[number % len(taken)], times)
    events = await read(host, run)
    expect_each_message_once(events)
    return await host.state(run, scope=ADA), events


async def repeat(hosts, run, signal, times=1):
    """Deliver again what was let in before: nothing is written, but that a stop was asked for."""
    before = await read(hosts[0], run)
    let_in = await asyncio.gather(*(deliver(host, run, signal, times) for host in hosts))
    await wait_until_idle(hosts, run)
    if isinstance(signal, Stop):
        return
    assert sum(let_in) == (times * len(hosts) if isinstance(signal, UserMessage) else 0)
    assert await read(hosts[0], run) == before


def expect_each_message_once(events):
    answers = [event.data for event in events if isinstance(event.data, RequestAnswered)]
    named = [answer.message_id for answer in answers if answer.message_id is not None]
    assert len(named) == len(set(named))


async def read(host, run):
    return [event async for event in host.events(run, scope=ADA)]


def summary(state):
    """A state without what depends on how many events it took, and which tool was quicker."""
    texts = sorted((message.role, message.agent, message.text) for message in state.messages)
    return state.status, state.outcome, dict(state.variables), texts, state.turns, state.turn_counts


async def in_memory(_path):
    return MemoryStore()


@pytest.mark.parametrize("journal", [in_memory, SqliteStore.open], ids=["memory", "sqlite"])
@settings(max_examples=15 * TIMES, derandomize=TIMES == 1)
@given(SCRIPTS, SIGNALS, st.integers(1, 4), LATER)
def test_a_signal_delivered_again_changes_nothing(journal, script, signals, times, later):
    """At the same moment, or any time later, whatever the run does by then."""

    async def story(path):
        kept = await journal(path)
        async with host_for(SPEC, model_of(script), code=CODE, store=kept) as host:
            once = await lead(host, signals)
            again = await lead(host, signals, times, "again", later)
            return once, again

    with tempfile.TemporaryDirectory() as folder:
        (once, _), (again, _) = play(story(Path(folder) / "journal.db"))
    assert summary(again) == summary(once)


@settings(max_examples=15 * TIMES, derandomize=TIMES == 1)
@given(SCRIPTS, SIGNALS, st.data())
def test_a_journal_folds_in_parts_and_twice_and_as_it_was_written(script, signals, data):
    async def story():
        async with host_for(SPEC, model_of(script), code=CODE) as host:
            state, events = await lead(host, signals)
            return state, events, await host.workflow("run", scope=ADA)

    state, events, workflow = play(story())
    cut = data.draw(st.integers(0, len(events)))
    part = fold(workflow.compiled, "run", events[:cut])
    for event in events[cut:]:
        part, _ = reduce(workflow.compiled, part, event)
    read_again = [
        event._replace(data=decode(KIND_NAMES[type(event.data)], encode(event.data)))
        for event in events
    ]
    assert part == state == fold(workflow.compiled, "run", read_again)
    assert fold(workflow.compiled, "run", events) == fold(workflow.compiled, "run", events)
    assert check_replay(workflow, "run", events) == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(event.cause < event.seq for event in events)


async def wait_until_idle(hosts, run):
    """Wait until no host has anything to do for a run; all must agree on where it stands."""
    rows = [await asyncio.wait_for(host.settled(run, scope=ADA), 10) for host in hosts]
    assert len({row.status for row in rows}) == 1
    return rows[0]


@settings(max_examples=15 * TIMES, derandomize=TIMES == 1)
@given(SCRIPTS, SIGNALS)
def test_only_events_that_say_so_set_variables(script, signals):
    async def story():
        async with host_for(SPEC, model_of(script), code=CODE) as host:
            _, events = await lead(host, signals)
            return events, (await host.workflow("run", scope=ADA)).compiled

    events, compiled = play(story())
    state = State("run")
    for event in events:
        before = state.variables
        state, _ = reduce(compiled, state, event)
        if not isinstance(event.data, RunStarted | VariableSet):
            assert state.variables == before
    assert {event.data.name for event in events if isinstance(event.data, VariableSet)} == set(
        state.set_by
    )


@settings(max_examples=5 * TIMES, derandomize=TIMES == 1)
@given(SCRIPTS, SIGNALS)
def test_of_two_hosts_on_one_run_one_wins_each_event(script, signals):
    async def never(_request):
        await asyncio.Event().wait()

    async def story(path):
        async with host_for(
            SPEC, FunctionModel(never), code=CODE, store=await SqliteStore.open(path)
        ) as host:
            await host.start("Desk", scope=ADA, message="hi", run="run")
        hosts = [
            host_for(SPEC, model_of(script), code=CODE, store=await SqliteStore.open(path))
            for _ in range(2)
        ]
        async with hosts[0], hosts[1]:
            for host in hosts:
                await host.resume("run", scope=ADA, take_over=True)
            await wait_until_idle(hosts, "run")
            taken = []
            for signal in signals:
                sent = await addressed(hosts[0], "run", signal)
                let_in = await asyncio.gather(*(deliver(host, "run", sent) for host in hosts))
                expect_once(sent, sum(let_in), len(hosts))
                taken += [sent] if any(let_in) else []
                await wait_until_idle(hosts, "run")
                for item in taken:
                    await repeat(hosts, "run", item)
            states = [await host.state("run", scope=ADA) for host in hosts]
            events = await read(hosts[0], "run")
            workflow = await hosts[0].workflow("run", scope=ADA)
        async with host_for(SPEC, model_of(script), code=CODE) as alone:
            return states, events, workflow, (await lead(alone, signals))[0]

    with tempfile.TemporaryDirectory() as folder:
        states, events, workflow, alone = play(story(Path(folder) / "journal.db"))
    assert states[0] == states[1] == fold(workflow.compiled, "run", events)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    for kind in (ModelReplied, ToolReturned):
        causes = [event.cause for event in events if isinstance(event.data, kind)]
        assert len(causes) == len(set(causes)), "a result is recorded once"
    assert summary(states[0]) == summary(alone)
    expect_each_message_once(events)


# Groups: members side by side, and a host that is closed at any moment

MEMBER_LINES = st.lists(
    st.sampled_from(
        [
            call("count"),
            call("count", by=3),
            call("ask", what="tea"),
            [call("count"), call("ask", what="ale")],
            call("nothing"),
        ]
    ),
    max_size=3,
)
TEAM_SCRIPTS = st.fixed_dictionaries(dict.fromkeys(MEMBERS, MEMBER_LINES))
MERGES = st.sampled_from(
    [
        {"merge": "concatenate"},
        {"merge": "majority"},
        {"merge": "collect"},
        {"merge": "custom", "function": "tools.merging:pick"},
    ]
)


class Pausing:
    """Answers by agent and call, after some rounds of the loop; remembers what it was sent."""

    def __init__(self, script, pauses):
        self.sent = {}
        self._script = script
        self._pauses = pauses

    async def reply(self, request, on_text=None):
        sent = request.agent, tuple(map(str, request.messages)), request.messages
        assert self.sent.setdefault(request.key, sent) == sent, "the same bytes, whoever sends them"
        for _ in range(self._pauses.get(request.agent, 0)):
            await asyncio.sleep(0)
        lines = self._script.get(request.agent, ())
        line = lines[request.call - 1] if request.call <= len(lines) else f"I am {request.agent}"
        return await FunctionModel(lambda _: line).reply(request, on_text)


class Kept(MemoryStore):
    """Outlives its hosts."""

    async def close(self):
        pass


def answer_of(row):
    """Every question has its own answer, whenever it is asked."""
    return f"{row.agent} says {row.payload}"


async def answer_all(host, run):
    """Answer until a run has ended."""
    while (row := await host.settled(run, scope=ADA)).status != "ended":
        for request in await host.requests(scope=ADA, run=run):
            await host.deliver(run, Answer(request.id, answer_of(request)), scope=ADA)
    return row


async def to_the_end(spec, model, opened, closings=()):
    """Play a run to its end; hosts are closed after so many rounds of the loop each."""
    for number, rounds in enumerate([*closings, None]):
        async with host_for(spec, model, code=TEAM_CODE, store=await opened()) as host:
            if number:
                await host.resume("run", scope=ADA)
            else:
                await host.start("Side", scope=ADA, message="write", run="run")
            going_on = asyncio.create_task(answer_all(host, "run"))
            if rounds is None:
                await going_on
                workflow = await host.workflow("run", scope=ADA)
                return await host.state("run", scope=ADA), await read(host, "run"), workflow
            for _ in range(rounds):
                await asyncio.sleep(0)
            going_on.cancel()
            await asyncio.gather(going_on, return_exceptions=True)
    raise AssertionError("the last host plays to the end")


def kept():
    """Open one store in memory as often as it is wanted."""
    store = Kept()

    async def opened():
        return store

    return opened


def expect_sent_as_recorded(model, events, workflow):
    """What models were sent is what the journal says they were."""
    recorded = {
        f"app/run:{event.seq}": (event.data.agent, event.data.digest)
        for event in events
        if isinstance(event.data, ContextAssembled)
    }
    for key, (agent, _, messages) in model.sent.items():
        assert recorded[key] == (agent, digest_of(messages, workflow.views[agent].extras))


def meaning(state):
    """A state without numbers and times of events."""
    said = [(message.role, message.agent, message.text) for message in state.messages]
    return state.status, state.outcome, state.reason, dict(state.variables), said, state.turn_counts


@settings(max_examples=20 * TIMES, derandomize=TIMES == 1)
@given(
    TEAM_SCRIPTS,
    MERGES,
    st.lists(st.integers(0, 120), max_size=4),
    st.fixed_dictionaries(dict.fromkeys(MEMBERS, st.integers(0, 12))),
)
def test_run_with_a_group_survives_closing_at_any_moment(script, merge, closings, pauses):
    spec = team(**merge)
    closed, alone = Pausing(script, pauses), Pausing(script, {})
    state, events, workflow = play(to_the_end(spec, closed, kept(), closings))
    without, _, _ = play(to_the_end(spec, alone, kept()))
    assert state.outcome == "completed"
    assert meaning(state) == meaning(without)
    assert check_replay(workflow, "run", events) == []
    assert fold(workflow.compiled, "run", events) == state
    expect_sent_as_recorded(closed, events, workflow)


@settings(max_examples=5 * TIMES, derandomize=TIMES == 1)
@given(TEAM_SCRIPTS, MERGES, st.lists(st.integers(0, 400), max_size=3))
def test_run_with_a_group_continues_in_another_host(script, merge, closings):
    spec = team(**merge)

    model = Pausing(script, {})

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        story = to_the_end(spec, model, lambda: SqliteStore.open(path), closings)
        state, events, workflow = play(story)
    assert state.outcome == "completed"
    assert check_replay(workflow, "run", events) == []
    expect_sent_as_recorded(model, events, workflow)


@settings(max_examples=10 * TIMES, derandomize=TIMES == 1)
@given(TEAM_SCRIPTS, MERGES)
def test_every_order_in_which_members_finish_gives_the_same_state(script, merge):
    spec = team(**merge)

    async def story(order):
        pauses = {name: 40 * place for place, name in enumerate(order)}
        state, events, _ = await to_the_end(spec, Pausing(script, pauses), kept())
        ended = [event.data.agent for event in events if isinstance(event.data, TurnEnded)]
        return state, [item for item in ended if item in MEMBERS]

    played = [play(story(order)) for order in permutations(MEMBERS)]
    first = played[0][0]
    for state, _ in played:
        assert meaning(state) == meaning(first)
        assert state.last_speaker == first.last_speaker
        assert state.spent == first.spent
    if not any(script.values()):
        assert {tuple(ended) for _, ended in played} == set(permutations(MEMBERS))
