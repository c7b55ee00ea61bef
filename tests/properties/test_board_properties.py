"""What holds for every board, whatever is published, comes to nothing, waits or is killed."""

import asyncio
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from support.board_cascade import NAME, handled, host_of, spec
from support.board_world import Component, World, came_of, linked, never
from support.effort import TIMES
from support.run_play import ADA
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.engine.commands import Fetch
from weft.engine.events import (
    KIND_NAMES,
    BatchesFlushed,
    DeliveryMissed,
    Event,
    RunEnded,
    StopRequested,
    TurnFailed,
    TurnStarted,
)
from weft.engine.events.codec import decode, encode
from weft.engine.reduce import advance, fold
from weft.inspect.replay import check_replay
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent
from weft.spec.workflow import WorkflowSpec
from weft.testing.clock import ManualClock

TYPES = ("A", "B", "C")
KEYS = ("k", "l")
AGENTS = ("Ann", "Ben", "Cas")
OBJECTS = {"local:never": never, "local:Component": Component}
PAYLOAD = {"type": "object", "properties": {"n": {"type": "integer"}, "k": {"type": "string"}}}

joins = st.one_of(
    st.none(),
    st.just({"by": "k"}),
    st.just({"by": "k", "within_seconds": 3}),
    st.just({"by": "k", "within_count": 3}),
    st.just({"by": "k", "within_count": 2, "within_seconds": 2}),
)
batches = st.one_of(
    st.none(),
    st.just({"size": 2}),
    st.just({"size": 3, "timeout_seconds": 4}),
    st.just({"timeout_seconds": 1}),
)
subscriptions = st.fixed_dictionaries(
    {
        "types": st.lists(st.sampled_from(TYPES), min_size=1, max_size=3),
        "priority": st.sampled_from([0, 0, 0, 5, -5]),
        "join": joins,
        "batch": batches,
        "activation": st.sampled_from([None, None, None, "A > 2", 'A > "x"']),
        "where": st.sampled_from([None, None, "n > 0", "absent > 0"]),
        "tags": st.sampled_from([[], [], ["t"]]),
    }
)
agents = st.fixed_dictionaries(
    {
        "consumes": st.lists(subscriptions, min_size=1, max_size=2),
        "max_concurrency": st.integers(1, 2),
        "prevent_self_trigger": st.booleans(),
        "components": st.sampled_from(
            [[], [{"component": "local:Component", "hooks": ["before_schedule"]}]]
        ),
        "publishes": st.lists(st.sampled_from(TYPES), max_size=2, unique=True),
    }
)
boards = st.fixed_dictionaries(
    {
        "agents": st.lists(agents, min_size=1, max_size=len(AGENTS)),
        "max_concurrency": st.integers(1, 4),
        "max_wakes_per_input": st.sampled_from([1, 3, 1000]),
        "idle_seconds": st.sampled_from([5, 60]),
    }
)


def spec_of(board):
    """Return a board as a spec."""
    declared = [
        {
            **agent,
            "agent": name,
            "context": {"kind": "empty"},
            "engines": [{"kind": "function", "function": "local:never"}],
            "publishes": [{"type": type_} for type_ in agent["publishes"]],
        }
        for name, agent in zip(AGENTS, board["agents"], strict=False)
    ]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Board"},
            "agents": [{"agent_name": entry["agent"]} for entry in declared],
            "board": {
                **board,
                "agents": declared,
                "artifacts": [{"name": type_, "schema": PAYLOAD} for type_ in TYPES],
            },
        }
    )


drafts = st.builds(
    lambda type_, n, k, tags, after, id_: {
        "type": type_,
        "payload": {"n": n, **({"k": k} if k else {})},
        "tags": tags,
        "visibility": {"kind": "after", "seconds": after, "then": {"kind": "public"}},
        "id": id_,
    },
    st.sampled_from(TYPES),
    st.integers(0, 2),
    st.sampled_from([*KEYS, *KEYS, ""]),
    st.sampled_from([(), ("t",)]),
    st.sampled_from([0, 0, 0, 1, 3]),
    st.sampled_from(["", "", "", "i1", "i2"]),
)
steps = st.one_of(
    st.tuples(st.just("publish"), drafts),
    st.tuples(st.just("publish"), drafts),
    st.tuples(
        st.just("finish"),
        st.tuples(st.integers(0, 7), st.sampled_from(["work"] * 5 + ["fail", "defer", "skip"])),
    ),
    st.tuples(st.just("time"), st.sampled_from([0, 1, 999, 2000, 5000, -1500])),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)
stories = st.lists(steps, max_size=30)


def cascade(world, effect):
    """Let an engine publish what its agent declares, until the numbers are used up."""
    inputs = world.state.active[effect.turn].inputs
    n = min(input_.payload["n"] for input_ in inputs)
    keys = [input_.payload["k"] for input_ in inputs if "k" in input_.payload]
    if n <= 0:
        return []
    payload = {"n": n - 1, **({"k": keys[0]} if keys else {})}
    publishes = world.rules.agents[effect.agent].publishes
    return [{"type": publish, "payload": payload} for publish in publishes]


def take(world, step):
    """Let one thing happen."""
    kind, what = step
    match kind:
        case "publish":
            world.publish(what)
        case "finish" if world.effects:
            place, how = what
            name = list(world.effects)[place % len(world.effects)]
            effect = world.effects[name]
            # What could be put off for ever is not.
            how = "work" if how == "defer" and world.state.turns > 60 else how
            world.finish(name, came_of(world, effect, how, cascade))
        case "time":
            world.pass_time(what)
        case "flush":
            world.write(NewEvent("user:ada", BatchesFlushed("ada")))
        case "restart":
            world.restart()
        case _:
            pass


def work_off(world):
    """Let everything be done that can be done without time."""
    for _ in range(2000):
        if not world.effects:
            return
        name, effect = next(iter(world.effects.items()))
        world.finish(name, came_of(world, effect, "work", cascade))
    raise AssertionError("it does not come to rest")


@cache
def workflow_of(text):
    return linked(WorkflowSpec.model_validate_json(text), OBJECTS)


def world_of(board):
    return World(workflow_of(spec_of(board).model_dump_json(by_alias=True)))


@settings(max_examples=60 * TIMES)
@given(boards, stories)
def test_nothing_is_lost_or_handled_twice_until_the_correlation_is_over(board, story):
    world = world_of(board)
    for step in story:
        take(world, step)
    work_off(world)
    for _ in range(40):
        if world.state.status == "ended":
            break
        world.pass_time(60_000)
        work_off(world)
    assert world.state.outcome == "completed"
    for want in world.wanted:
        handled = world.started[want] - world.deferred[want]
        assert handled + world.lost[want] == 1, f"{want} is neither handled nor told of"


@settings(max_examples=40 * TIMES)
@given(boards, stories, st.sampled_from(["now", "after_turn"]))
def test_nothing_is_lost_in_silence_when_a_correlation_is_stopped(board, story, mode):
    world = world_of(board)
    for step in story:
        take(world, step)
    if world.state.status == "ended":
        return
    world.write(NewEvent("user:ada", StopRequested(mode, "ada")))
    work_off(world)
    assert world.state.outcome == "cancelled"
    for want in world.wanted:
        handled = world.started[want] - world.deferred[want]
        assert handled + world.lost[want] >= 1, f"{want} is neither handled nor told of"


@settings(max_examples=40 * TIMES)
@given(boards, stories, st.data())
def test_a_board_folds_in_parts_and_as_it_was_written_and_replays(board, story, data):
    world = world_of(board)
    for step in story:
        take(world, step)
    compiled, events = world.workflow.compiled, world.events
    cut = data.draw(st.integers(0, len(events)))
    part = fold(compiled, "c1", events[:cut])
    for event in events[cut:]:
        advance(compiled, part, event)
    read_again = [
        event._replace(data=decode(KIND_NAMES[type(event.data)], encode(event.data)))
        for event in events
    ]
    assert part == world.state == fold(compiled, "c1", read_again)
    assert check_replay(world.workflow, "c1", events) == []


@settings(max_examples=30 * TIMES)
@given(boards, stories)
def test_a_late_result_and_one_that_comes_twice_change_nothing(board, story):
    world = world_of(board)
    for kind, what in story:
        before = dict(world.effects)
        take(world, (kind, what))
        gone = [value for name, value in before.items() if name not in world.effects]
        for effect in gone if kind == "finish" else ():
            state, count = world.state, len(world.events)
            again = came_of(world, effect, "fail", cascade)
            world.write(NewEvent("world", again, effect.seq, effect.turn))
            assert (world.state, len(world.events)) == (state, count)


@settings(max_examples=30 * TIMES)
@given(boards, stories)
def test_a_restart_at_any_moment_changes_nothing(board, story):
    """What is open is done again; what was decided is not decided anew."""
    world, other = world_of(board), world_of(board)
    for step in story:
        take(world, step)
        take(other, step)
        other.restart()
    work_off(world)
    work_off(other)
    assert [_said(event) for event in world.events] == [_said(event) for event in other.events]


def _said(event):
    return event.turn, event.data


def test_the_wake_limit_gives_up_what_is_too_much_and_lets_the_rest_be():
    """One artifact from outside may wake an agent once; what it makes of it wakes it no more."""
    again = {"consumes": [{"types": ["A"]}], "prevent_self_trigger": False, "publishes": ["A"]}
    world = world_of({"agents": [again], "max_wakes_per_input": 1})
    world.publish({"type": "A", "payload": {"n": 2}})
    work_off(world)
    missed = [event.data for event in world.events if isinstance(event.data, DeliveryMissed)]
    assert [(delivery.subscription, delivery.why) for delivery in missed] == [
        ("Ann.0", "wake_limit")
    ]
    world.publish({"type": "A", "payload": {"n": 0}})
    work_off(world)
    assert Counter(item for _, item in world.started)  # The next from outside is handled.
    assert len(world.started) == 2
    assert not any(isinstance(event.data, RunEnded) for event in world.events)


def test_effect_results_are_validated_by_the_port():
    """The world must be able to fail: an artifact that vanishes is noticed."""
    world = world_of({"agents": [{"consumes": [{"types": ["A"]}], "publishes": []}]})
    world.publish({"type": "A", "payload": {"n": 0}})
    assert not any(isinstance(effect, Fetch) for effect in world.effects.values())
    world.wanted["Ann.0", "other"] += 1
    try:
        world.publish({"type": "A", "payload": {"n": 0}})
    except AssertionError:
        return
    raise AssertionError("a lost artifact was not noticed")


# -- with hosts that are closed at any moment

OUTSIDE = st.tuples(
    st.just("publish"),
    st.tuples(
        st.sampled_from(["c1", "c1", "c2"]),
        st.sampled_from(["Seed", "Left", "Right"]),
        st.sampled_from(["k", "l"]),
    ),
)
PLAYS = st.lists(
    st.one_of(OUTSIDE, OUTSIDE, OUTSIDE, st.tuples(st.just("time"), st.sampled_from([1, 3, 10]))),
    min_size=3,
    max_size=14,
)


class Kept(MemoryStore):
    """Outlives its hosts."""

    async def close(self):
        pass


async def calm(host, clock):
    """Wait until nothing is to be done, and nothing is due either."""
    while True:
        await host.quiet()
        due = await host._store.next_due()
        if (due is None or due > clock.now()) and not host.busy:
            return
        await asyncio.sleep(0.001)


async def played(story, opened, closings, pauses=()):
    """Play a story with hosts that are closed after so many rounds of the loop after each step."""
    clock, declared = ManualClock(), spec()
    ends = list(closings)
    host = host_of(declared, await opened(clock), clock=clock)
    for number, (kind, what) in enumerate(story):
        if kind == "publish":
            correlation, type_, key = what
            payload = {"label": f"{correlation}-{number}", "k": key}
            place = "p" if number % 2 else "q"
            await host.publish(
                NAME, type_, payload, scope=ADA, correlation=correlation, partition=place
            )
        else:
            await calm(host, clock)
            await clock.advance(what)
        if ends:
            for _ in range(ends.pop(0)):
                await asyncio.sleep(0)
            await host.close()
            host = host_of(declared, await opened(clock), clock=clock)
            await host.recover()
    await calm(host, clock)
    for _ in range(4):
        await clock.advance(5)
        await calm(host, clock)
    async with host:
        rows = await host.runs(scope=Scope.operator("app"))
        runs = {}
        for row in rows:
            read = host.events(row.run, scope=Scope.operator("app"))
            events = [item async for item in read if isinstance(item, Event)]
            mismatches = check_replay(await host.workflow(row.run, scope=ADA), row.run, events)
            assert mismatches == []
            assert not [event for event in events if isinstance(event.data, TurnFailed)]
            runs[row.run] = events
        consumed = await host._store.consumed("app", NAME, owners=None, limit=100_000)
        for run in runs:
            assert await host._store.pending("app", run) == []
        return runs, consumed


def expect_apart(runs):
    """What is collected within a correlation is of that correlation alone."""
    for run, events in runs.items():
        start = events[0].data
        for _, inputs in handled(events, run):
            if not start.collects:
                assert all(label.startswith(f"{start.correlation}-") for label in inputs)


def meaning(runs):
    """Say who handled what, in all runs; put off as often as it takes counts once."""
    found = Counter()
    for run, events in runs.items():
        for (who, what), times in handled(events, run).items():
            # Which leads of two correlations come together is up to chance.
            found[who, () if who == "Pairs" else what] += 1 if who == "Patient" else times
    return found


def expect_recorded(runs, consumed):
    """The records of the store say what the events say."""
    told = Counter((event.agent, event.artifact, event.run, event.turn) for event in consumed)
    events = Counter(
        (event.data.agent, artifact, run, event.turn)
        for run, several in runs.items()
        for event in several
        if isinstance(event.data, TurnStarted)
        for artifact in event.data.inputs
    )
    assert told == events


def run_story(story, opened, closings):
    return asyncio.run(asyncio.wait_for(played(story, opened, closings), 60))


def kept():
    """Open one store in memory as often as it is wanted."""
    stores = []

    async def opened(clock):
        if not stores:
            stores.append(Kept(clock))
        return stores[0]

    return opened


@settings(max_examples=10 * TIMES)
@given(PLAYS, st.lists(st.integers(0, 60), max_size=14))
def test_board_is_unchanged_by_closing_its_hosts_at_any_moment(story, closings):
    runs, consumed = run_story(story, kept(), closings)
    alone, _ = run_story(story, kept(), ())
    expect_apart(runs)
    expect_recorded(runs, consumed)
    assert meaning(runs) == meaning(alone)


@settings(max_examples=2 * TIMES)
@given(PLAYS, st.lists(st.integers(0, 200), max_size=14))
def test_board_continues_in_another_host_on_one_file(story, closings):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        runs, consumed = run_story(
            story, lambda clock: SqliteStore.open(path, clock=clock), closings
        )
    alone, _ = run_story(story, kept(), ())
    expect_apart(runs)
    expect_recorded(runs, consumed)
    assert meaning(runs) == meaning(alone)
