"""Non-interference: what an agent may not see changes nothing of what it is given.

Boards, agents, policies and provider trees are made from a seed, and there are thousands of them:
each is looked at twice, the second time with what is hidden changed, deleted or added to. Every
byte must be the same: names, what providers gave, counts and errors, what is put together for the
model and its manifest. How long something takes, and who waits for whom, is not looked at here.
"""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import count
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import weft.board as providers
from support.effort import TIMES
from weft.adapters.memory import MemoryStore
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sql import SqliteStore
from weft.context.similarity import Similarity
from weft.engine.events import SOURCE, ArtifactPublished, ContextFetched, RunStarted
from weft.engine.events.codec import encode
from weft.engine.state import State
from weft.ports.scope import Scope
from weft.ports.tools import Call
from weft.runtime.board.code import LinkedHook
from weft.runtime.board.preparing import prepare_activation
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.tools.code_call import CodeCall, CodePorts
from weft.runtime.workflow import Linking, link
from weft.spec.providers import FilterConfig
from weft.spec.workflow import WorkflowSpec
from weft.testing import WordEmbedder
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel
from weft.testing.store.board_samples import BoardRun

NAME = "Board"
NOW = 100_000
TYPES = ("Idea", "Plan", "Note")
TAGS = ("a", "b")
CORRELATIONS = ("c1", "c2")
WORDS = ("tea", "Tea", "rain", "50%", "")
AGENTS = {"Ann": (), "Ben": ("red",), "Cas": ("red", "blue")}
LABELS = ("red", "blue", "grey")
#: One for all, as in a host: what it has kept of others changes nothing.
SIMILARITY = Similarity(WordEmbedder())


def spec(agents=AGENTS):
    """Return the board whose agents are looked at; each of them is a model."""
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": NAME},
            "agents": [{"agent_name": agent} for agent in agents],
            "board": {
                "artifacts": [{"name": type_, "schema": {"type": "object"}} for type_ in TYPES],
                "agents": [
                    {"agent": name, "labels": labels, "consumes": [{"types": ["Idea"]}]}
                    for name, labels in agents.items()
                ],
            },
        }
    )


@cache
def linked():
    return link(spec(), {}, PythonToolLoader())


@cache
def begun(agent):
    """Return a run in which an agent is about to be given its context."""
    workflow = linked()
    start = RunStarted(NAME, workflow.digest, "app", "ada", {}, correlation="c1")
    idea = ArtifactPublished("Idea", {"text": "tea"}, "user:ada", "go", wakes={f"{agent}.0": ""})
    news = (NewEvent("user:ada", start), NewEvent("user:ada", idea))
    decision = decide(workflow, State("c1"), news, NOW - 1)
    return decision.state, decision.effects[0]


# -- boards, agents, policies and trees at random


def policy(chance, depth=0):
    """Return one of the five policies; one that waits may wait for another that does."""
    match chance.choice(["public", "private", "labelled", "tenant", "after", "broken"]):
        case "private":
            return {
                "kind": "private",
                "agents": chance.sample(sorted(AGENTS), chance.randint(1, 2)),
            }
        case "labelled":
            return {"kind": "labelled", "labels": chance.sample(LABELS, chance.randint(1, 2))}
        case "tenant":
            return {"kind": "tenant", "tenant": chance.choice([None, "other"])}
        case "after" if depth < 3:
            seconds = chance.choice([0, 1, 20, 200])
            return {"kind": "after", "seconds": seconds, "then": policy(chance, depth + 1)}
        case "broken":
            return chance.choice([{"kind": "secret"}, {}, {"kind": "private", "agents": []}])
        case _:
            return {"kind": "public"}


def is_hidden(visibility, at, agent, app):
    """Say in plain words whether an agent may not see an artifact now."""
    while visibility.get("kind") == "after":
        at, visibility = at + visibility["seconds"] * 1000, visibility["then"]
    match visibility:
        case {"kind": "public"}:
            sees = True
        case {"kind": "private", "agents": named}:
            sees = agent in named
        case {"kind": "labelled", "labels": wanted}:
            sees = set(wanted) <= set(AGENTS[agent])
        case {"kind": "tenant", "tenant": named}:
            sees = named in (None, app)
        case _:
            sees = False
    return not sees or at > NOW


def payload(chance):
    return {
        "text": " ".join(chance.choice(WORDS) for _ in range(chance.randint(0, 3))),
        "secret": chance.randint(0, 9),
        "inner": {"secret": [chance.randint(0, 9)], "more": "x" * chance.choice([0, 3, 400])},
    }


def artifact(chance, number):
    """Return an artifact: where it stands, when it came, and what it is."""
    data = ArtifactPublished(
        type=chance.choice(TYPES),
        payload=payload(chance),
        by=chance.choice([*AGENTS, "user:ada"]),
        id=f"id{number}",
        tags=tuple(chance.sample(TAGS, chance.randint(0, 2))),
        partition=chance.choice(["", "p"]),
        visibility=policy(chance),
    )
    return chance.choice(CORRELATIONS), NOW - chance.randint(0, 40) * 1000, data


def filters(chance):
    """Return a filter that lets through about half of what there is."""
    some = {
        "types": tuple(chance.sample(TYPES, 2)),
        "tags": chance.choice([{"include": ["a"]}, {"exclude": ["a"]}, {"all_of": ["a", "b"]}]),
        "producers": ("Ann", "user:ada"),
        "since": datetime.fromtimestamp(NOW / 1000 - 20, UTC),
        "until": datetime.fromtimestamp(NOW / 1000 - 5, UTC),
        "correlation_id": chance.choice(CORRELATIONS),
        "partition": "p",
        "text": chance.choice(["tea", "secret", "rain"]),
        "limit": chance.randint(1, 5),
        "order": "created_at",
    }
    return FilterConfig(
        **{key: some[key] for key in chance.sample(sorted(some), chance.randint(0, 2))}
    )


def masked(value):
    return f"<{type(value).__name__}>"


class Curious:
    """Tries everything a provider may: counts, all there is, what agents were woken, guesses."""

    def __init__(self, filters, guesses, *, raises=False):
        self.filters = filters
        self.guesses = guesses
        self.raises = raises

    async def __call__(self, request):
        found, total = await request.board.query_artifacts(self.filters, embed_meta=True)
        page, _ = await request.board.query_artifacts(FilterConfig(limit=2), offset=1)
        everything = await request.board.find(FilterConfig(limit=1000))
        told = {
            "total": total,
            "all": len(everything),
            "used": [item.consumed_by for item in found],
            "page": [repr(item) for item in page],
        }
        if self.raises:
            raise ValueError(f"there are {told}")
        guessed = [{"id": guess, "type": "Guess", "payload": {}} for guess in self.guesses]
        return providers.ContextSlice([*(item.item() for item in found), *guessed], told)


LEAVES = (
    "correlated", "filtered", "recent", "window", "semantic", "state", "empty", "curious",
)  # fmt: skip


def semantic(chance):
    """Return a provider that compares meanings, by every query there is."""
    query = chance.choice([{"query": "tea"}, {"query_field": "text"}, {"query_field": "none"}, {}])
    return providers.SemanticContextProvider(
        **query,
        limit=chance.choice([1, 3, 10]),
        threshold=chance.choice([0, 0.2, 0.5]),
        filters=filters(chance),
    )


def tree(chance, guesses, depth=0):  # noqa: PLR0911 - one for each kind
    """Return a provider, which may have others inside."""
    inner = ["composite", "redacting", "summary"] if depth < 3 else []
    match chance.choice([*LEAVES, *inner, *inner]):
        case "correlated":
            return providers.DefaultCorrelationProvider(chance.choice([1, 2, 50]))
        case "filtered":
            keys = chance.choice([(), ("seen", "missing")])
            return providers.FilteredContextProvider(
                filters(chance), chance.choice([None, 2]), keys
            )
        case "recent":
            return providers.RecentProvider(chance.choice([1, 3, 10]))
        case "window":
            return providers.TimeWindowProvider(
                chance.choice([1, 15, 1000]), chance.choice([2, 50])
            )
        case "semantic":
            return semantic(chance)
        case "state":
            return providers.StateDelegatingProvider(chance.choice(["context_snapshot", "nothing"]))
        case "composite":
            several = [tree(chance, guesses, depth + 1) for _ in range(chance.randint(1, 3))]
            limit = chance.choice([None, 1, 4])
            return providers.CompositeProvider(
                *several, parallel=chance.random() < 0.5, limit=limit
            )
        case "redacting":
            drop, transform = chance.choice([({"secret"}, {}), ((), {"secret": masked}), ((), {})])
            return providers.RedactingProvider(
                tree(chance, guesses, depth + 1), drop=drop, transform=transform
            )
        case "summary":
            templates = chance.choice([{}, {"Idea": "It says {text}", "Plan": "{none}"}])
            return providers.SummarisingProvider(tree(chance, guesses, depth + 1), templates)
        case "curious":
            return Curious(filters(chance), guesses, raises=chance.random() < 0.2)
        case _:
            return providers.EmptyProvider()


async def snapshot(ctx, inputs):
    """Fill the state as a component may."""
    found, total = await ctx.board.query_artifacts(FilterConfig(limit=3))
    ctx.state["context_snapshot"] = [item.item() for item in found]
    ctx.state["seen"] = total


def altered(chance, board, agent, app):
    """Return a board in which only what an agent may not see is changed, deleted or added to."""
    found = []
    for number, (correlation, at, data) in enumerate(board):
        if not is_hidden(data.visibility, at, agent, app):
            found.append((correlation, at, data))
            continue
        match chance.choice(["delete", "change", "replace", "keep"]):
            case "delete":
                pass
            case "change":
                found.append((correlation, at, replace(data, payload=payload(chance))))
            case "replace":
                other = hidden_one(chance, number, agent, app)
                found.append((correlation, other[1], other[2]))
            case _:
                found.append((correlation, at, data))
    for number in range(len(board), len(board) + chance.randint(0, 3)):
        # A name may be that of another, in another run; and it may come before what can be seen.
        made = hidden_one(chance, chance.choice([0, number]), agent, app)
        found.insert(chance.randint(0, len(found)), made)
    return found


def hidden_one(chance, number, agent, app):
    while True:
        made = artifact(chance, number)
        if is_hidden(made[2].visibility, made[1], agent, app):
            return made


# -- what an agent is given


async def written(store, app, board):
    """Write a board: every correlation is a run."""
    owner = begun(min(AGENTS))[0].board.owner
    runs = {
        correlation: BoardRun(
            f"run-{correlation}", app, workflow=NAME, correlation=correlation, owner=owner
        )
        for correlation in CORRELATIONS
    }
    for correlation, at, data in board:
        await store.append(runs[correlation].writing(data, at=at), owner="worker")
    return store


async def given_to(store, app, agent, provider, fallback):
    """Return everything that an activation is given, but how long it took, as bytes."""
    state, fetch = begun(agent)
    state = state.copy()
    state.app = app
    workflow = linked()
    code = replace(
        workflow.board_code,
        contexts={agent: provider},
        fallbacks={agent: fallback} if fallback else {},
        hooks={(agent, "pre_consume"): (LinkedHook("Filler.pre_consume", snapshot),)},
    )
    workflow = replace(workflow, board_code=code)
    ports = CodePorts(store, ManualClock(NOW), SIMILARITY)
    call = CodeCall(ports, workflow, state, Call("", key="key"), state.active[fetch.turn])
    given, fault = await prepare_activation(call)
    for slice_ in given.get("slices", ()):
        slice_.pop("ms")
    fetched = ContextFetched({}, {}, board=given, error=fault)
    new = NewEvent(SOURCE, fetched, fetch.seq, fetch.turn)
    decision = decide(workflow, state, (new,), NOW)
    sent = [
        [list(map(str, assembly.messages)), assembly.manifest]
        for assembly in decision.assemblies.values()
    ]
    return [encode(event.data) for event in decision.events], json.dumps(sent, default=str)


class Case:
    """A board, an agent and its provider, from a seed."""

    def __init__(self, seed, app):
        self.chance = chance = Random(seed)
        self.app = app
        self.agent = chance.choice(sorted(AGENTS))
        self.board = [artifact(chance, number) for number in range(chance.randint(1, 12))]
        some = [f"id{chance.randint(0, 14)}" for _ in range(3)]
        guesses = chance.choice([(), (*some, "nobody")])
        self.provider = tree(chance, guesses)
        self.fallback = tree(chance, guesses) if chance.random() < 0.5 else None

    def other(self):
        return altered(self.chance, self.board, self.agent, self.app)

    async def given(self, store):
        return await given_to(store, self.app, self.agent, self.provider, self.fallback)


SEEDS = st.integers(0, 2**48)


@settings(max_examples=400 * TIMES, phases=[Phase.explicit, Phase.generate])
@given(SEEDS)
def test_hidden_artifacts_do_not_change_inputs(seed):
    async def scenario():
        case = Case(seed, "app")
        before = await case.given(await written(MemoryStore(), "app", case.board))
        after = await case.given(await written(MemoryStore(), "app", case.other()))
        assert after == before

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """A loop, a SQLite store that is open in it, and names for tenants."""
    with asyncio.Runner() as runner:
        path = tmp_path_factory.mktemp("board") / "store.db"
        store = runner.run(SqliteStore.open(path, durability="normal"))
        yield runner, store, (f"tenant{item}" for item in count())
        runner.run(store.close())


@settings(max_examples=30 * TIMES, phases=[Phase.explicit, Phase.generate])
@given(seed=SEEDS)
def test_a_file_gives_what_memory_gives_and_hides_what_it_hides(lasting, seed):
    runner, store, tenants = lasting

    async def scenario():
        app = next(tenants)
        case = Case(seed, app)
        before = await case.given(await written(MemoryStore(), app, case.board))
        assert await case.given(await written(store, app, case.board)) == before
        # Another tenant, with the same seed and the same chance: only its name differs.
        other = next(tenants)
        twin = Case(seed, other)
        after = await twin.given(await written(store, other, twin.other()))
        assert _named(after, other) == _named(before, app)

    runner.run(scenario())


def _named(given, app):
    return repr(given).replace(app, "TENANT")


def test_visible_artifacts_change_inputs():
    """The property above could fail: most visible artifacts make a difference."""

    async def scenario(seed):
        case = Case(seed, "app")
        seen = [
            (correlation, at, replace(data, payload={"text": "other"}))
            for correlation, at, data in case.board
        ]
        before = await case.given(await written(MemoryStore(), "app", case.board))
        after = await case.given(await written(MemoryStore(), "app", seen))
        return before != after

    differ = sum(asyncio.run(scenario(seed)) for seed in range(200))
    assert differ > 80


# -- through whole hosts


async def in_memory(_path, clock):
    return MemoryStore(clock)


@pytest.mark.parametrize("opened", [in_memory, SqliteStore.open], ids=["memory", "sqlite"])
@settings(max_examples=30 * TIMES, phases=[Phase.explicit, Phase.generate])
@given(seed=SEEDS)
def test_hidden_artifacts_do_not_change_the_prompt(tmp_path_factory, opened, seed):
    """Through a host: what the model is sent, what was fetched for it, and the manifest."""

    async def story(case, board):
        sent = []

        def reply(request):
            sent.append([str(message) for message in request.messages])
            return "{}"

        declared = declared_with(case)
        path = tmp_path_factory.mktemp("host") / "store.db"
        linking = Linking(objects={"local:tree": case.provider, "local:fallback": case.fallback})
        clock = ManualClock(NOW)
        store = await opened(path, clock=clock)
        host = host_for(declared, FunctionModel(reply), store=store, clock=clock, linking=linking)
        async with host:
            await written(store, "app", board)
            scope = Scope("app", "ada")
            await host.publish(NAME, "Idea", {"text": "go"}, scope=scope, correlation="c9")
            await host.quiet()
            run = await host.run_of(NAME, "c9", scope=scope)
            events = [event async for event in host.events(run, scope=scope)]
            return sent, [_timeless(event) for event in events]

    async def both():
        case = Case(seed, "app")
        before = await story(case, case.board)
        assert await story(case, case.other()) == before

    asyncio.run(asyncio.wait_for(both(), 30))


def declared_with(case):
    """Return a board with one agent, whose provider is that of a case."""
    fallback = {"kind": "custom", "provider": "local:fallback"}
    whole = spec({case.agent: AGENTS[case.agent]}).model_dump(by_alias=True)
    (agent,) = whole["board"]["agents"]
    agent["context"] = {"kind": "custom", "provider": "local:tree"}
    agent["fallback"] = fallback if case.fallback else None
    return WorkflowSpec.model_validate(whole)


def _timeless(event):
    data = json.loads(encode(event.data))
    for slice_ in (data.get("board") or {}).get("slices", ()):
        slice_.pop("ms")
    return event.seq, event.at, event.turn, json.dumps(data)
