"""A board in code and a board in files say the same, and run the same."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from support.boards import Note, Order, Payment, Receipt
from weft.board import (
    AfterVisibility,
    BatchSpec,
    Board,
    Component,
    CompositeProvider,
    ContextSlice,
    EmptyProvider,
    Engine,
    FilterConfig,
    FilteredContextProvider,
    FunctionEngine,
    JoinSpec,
    ModelEngine,
    PrivateVisibility,
    RecentProvider,
    RedactingProvider,
    StateDelegatingProvider,
    SummarisingProvider,
    TagFilter,
    TimeWindowProvider,
)
from weft.dsl.board import AgentBuilder
from weft.engine.events import ContextFetched, DeliveryMissed
from weft.errors import UsageError
from weft.packages.reader import read_package
from weft.ports.scope import Scope
from weft.spec.workflow import digest
from weft.testing import FunctionModel, ScriptedModel, host_for


def wanted(payload: Order) -> bool:
    return payload.total > 1


def work(inputs, ctx):
    return Note(text=f"order {inputs.first_as(Order).number}")


def hush(value):
    return "***"


def score(artifacts):
    return len(artifacts)


class Shout(Engine):
    def __init__(self, loud: int = 1) -> None:
        self.loud = loud

    async def evaluate(self, ctx, inputs):
        return Note(text="!" * self.loud)


class Watch(Component):
    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def before_schedule(self, ctx, inputs):
        return None


def tell(city: str) -> str:
    """Tell something."""
    return city


def everything() -> Board:
    """A board that says everything there is to say."""
    board = Board(name="everything", max_wakes_per_input=50, max_concurrency=4, idle_seconds=60)
    board.with_components(Watch(limit=9))
    tree = CompositeProvider(
        RedactingProvider(RecentProvider(3), drop={"b", "a"}, transform={"secret": hush}),
        SummarisingProvider(TimeWindowProvider(60), {"Note": "{text}"}),
        FilteredContextProvider(
            FilterConfig(
                types={"Note", "Order"},
                tags=TagFilter(include={"x"}, exclude={"y"}, all_of={"z"}),
                producers={"worker"},
                since=datetime(2026, 1, 1, tzinfo=UTC),
                text="hello",
                limit=5,
                order="created_at",
            ),
            include_state_keys={"mood"},
        ),
        StateDelegatingProvider("snapshot"),
        parallel=True,
        limit=7,
    )
    (
        board.agent("worker")
        .description("Works.")
        .prompt("Do it well.", heading="[ROLE]")
        .consumes(
            Order, where=wanted, tags={"b", "a"}, priority=3, context_provider=EmptyProvider()
        )
        .consumes(Order, Payment, join=JoinSpec("number", timedelta(seconds=5)), batch=BatchSpec(2))
        .publishes(
            Note, visibility=AfterVisibility(seconds=1, then=PrivateVisibility(agents=("b",)))
        )
        .publishes(Receipt, fan_out=2, where="text != ''", validate="text != 'x'", tags={"r"})
        .with_context(tree, fallback=EmptyProvider())
        .with_engines(FunctionEngine(work), Shout(loud=2), ModelEngine("sample", "Be brief."))
        .with_tools(tell)
        .with_utilities(Watch())
        .labels("l")
        .best_of(2, score)
        .max_concurrency(3)
        .prevent_self_trigger(False)
    )
    board.agent("b").consumes(Note, activation="Note > 2", mode="events", scope="correlation")
    board.agent("timer").publishes(Note).schedule(cron="0 6 * * *", delay=5, max_repeats=3)
    return board


def test_code_and_files_say_the_same(tmp_path):
    board = everything()
    spec = board.build()
    board.save(tmp_path / "everything")
    package = read_package(tmp_path / "everything")
    assert package.spec == spec
    assert digest(package.spec, {}) == digest(everything().build(), {})


def test_every_method_of_the_builder_is_in_it():
    said = {name for name in vars(AgentBuilder) if not name.startswith("_")}
    others = {"contents", "declared", "declared_agent", "tools", "name", "agent"}
    source = everything.__code__.co_names
    assert said - others - set(source) == {"with_context_filter"}  # A word for with_context.


class Loud(Component):
    def __init__(self, word: str = "") -> None:
        self.word = word

    def post_evaluate(self, ctx, result):
        return [Note(text=self.word) for _ in result.artifacts]


class Fixed:
    def __init__(self, text: str) -> None:
        self.text = text

    async def __call__(self, request):
        return ContextSlice([{"type": "Note", "payload": {"text": self.text}}])


def use(inputs, ctx):
    return Note(text=ctx.items[0]["payload"]["text"])


async def texts(host, name: str) -> list[str]:
    scope = Scope("shop", "ann")
    async with host:
        await host.publish(name, "Order", {"number": 7}, scope=scope)
        await host.quiet()
        found, _ = await host.artifacts(name, FilterConfig(types={"Note"}), scope=scope)
        return sorted(artifact.payload["text"] for artifact in found)


def test_components_are_made_with_their_options(tmp_path):
    board = Board(name="options")
    for name, word in (("a", "hello"), ("b", "world")):
        board.agent(name).consumes(Order).publishes(Note).with_utilities(Loud(word)).with_engines(
            FunctionEngine(work)
        )
    board.agent("c").consumes(Order).publishes(Note).with_context(Fixed("fixed")).with_engines(
        FunctionEngine(use)
    )
    declared = board.build().board.agents
    assert declared[0].components[0].options == {"word": "hello"}
    assert declared[2].context.options == {"text": "fixed"}
    board.save(tmp_path / "options")
    host = host_for(read_package(tmp_path / "options").spec, ScriptedModel([]))
    assert asyncio.run(texts(host, "options")) == ["fixed", "hello", "world"]


def test_a_model_of_an_engine_s_own_answers_for_it():
    asked = []

    def say(request):
        asked.append((request.agent, request.model))
        return '{"text": "x"}'

    board = Board(name="models")
    board.agent("a").consumes(Order).publishes(Note).with_engines(
        ModelEngine(model="sample"), ModelEngine(model="other")
    )
    assert asyncio.run(texts(host_for(board.build(), FunctionModel(say)), "models")) == ["x"]
    assert asked == [("a", "sample"), ("a#1", "other")]


def test_local_objects_are_not_saved(tmp_path):
    board = Board(name="here")
    board.agent("a").consumes(Order).with_engines(FunctionEngine(lambda inputs: None))
    with pytest.raises(UsageError, match="local:") as caught:
        board.save(tmp_path / "here")
    assert "import" in (caught.value.hint or "")
    assert not (tmp_path / "here").exists()


def test_a_board_from_files_runs_the_same(tmp_path):
    board = Board(name="desk")
    board.agent("worker").consumes(Order, where=wanted).publishes(Note).with_engines(
        FunctionEngine(work)
    )
    board.save(tmp_path / "desk")

    async def run(host):
        scope = Scope("shop", "ann")
        async with host:
            for total in (1, 2):
                await host.publish("desk", "Order", {"number": 7, "total": total}, scope=scope)
            await host.quiet()
            found, _ = await host.artifacts("desk", FilterConfig(types={"Note"}), scope=scope)
            return [artifact.payload["text"] for artifact in found]

    package = read_package(tmp_path / "desk")
    assert asyncio.run(run(host_for(package.spec, ScriptedModel([])))) == ["order 7"]
    assert asyncio.run(run(host_for(board.build(), ScriptedModel([])))) == ["order 7"]


def test_the_shipped_board_runs_from_a_lead_to_an_edition(tmp_path):
    from weft.adapters.models.sample import SampleModel
    from weft.packages.workspace import shipped_folder

    package = read_package(shipped_folder() / "NewsDesk")
    scope = Scope("shop", "ann")
    lead = {"headline": "Rain", "source": "ada@home", "contact": "12345", "urgency": 4}

    async def run():
        async with host_for(package.spec, SampleModel(3), code=package.code) as host:
            for _ in range(3):
                await host.publish("NewsDesk", "Lead", lead, scope=scope, correlation="c")
            await host.quiet()
            run = await host.run_of("NewsDesk", "c", scope=scope)
            await host.flush(run, scope=scope)
            await host.quiet()
            found, _ = await host.artifacts("NewsDesk", scope=scope)
            events = [event async for event in host.events(run, scope=scope)]
            return {item.type for item in found}, [event.data for event in events]

    kinds, events = asyncio.run(run())
    assert kinds == {"Lead", "Story", "FactCheck", "Edition"}
    assert not [event for event in events if isinstance(event, DeliveryMissed)]
    fetched = str([event for event in events if isinstance(event, ContextFetched)])
    assert "house_style" in fetched
