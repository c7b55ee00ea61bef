"""What artifacts, calls and activations of a board are called, where somebody gets to see it."""

import pytest
from pydantic import BaseModel

from support.boards import Note, Order, Receipt, Seen, play
from weft.board import (
    BLOCK,
    DEFER,
    Board,
    Component,
    FilterConfig,
    FunctionEngine,
    JoinSpec,
    Output,
    PrivateVisibility,
    RecentProvider,
    artifact,
)
from weft.engine.events import ArtifactPublished, Event
from weft.errors import UsageError
from weft.ports.scope import Scope

SECRET = PrivateVisibility(agents=("nobody",))


def worker(board: Board, engine, *components):
    made = board.agent("worker").consumes(Order).publishes(Note, fan_out=9)
    return made.with_utilities(*components).with_engines(FunctionEngine(engine))


async def notes_of(board: Board) -> list[str]:
    """Return the ids of all notes that anybody may see, oldest first."""
    wanted = FilterConfig(types={"Note"}, order="created_at")
    found, _ = await (await board.host()).artifacts(
        board.name, wanted, scope=board.scope, agent="worker"
    )
    return [item.id for item in found]


async def test_artifact_from_outside_gets_a_lasting_id(board):
    board.types(Note)
    one, two = [await board.publish(Note(text=letter), correlation_id="c") for letter in "ab"]
    named = await board.publish(Note(text="c"), correlation_id="c", id="mine")
    assert len({one.id, two.id, "mine"}) == 3
    assert named.id == "mine"
    host = await board.host()
    run = await host.run_of(board.name, "c", scope=board.scope)
    events = [event async for event in host.events(run, scope=Scope.operator(board.scope.app))]
    ids = [
        event.data.id
        for event in events
        if isinstance(event, Event) and isinstance(event.data, ArtifactPublished)
    ]
    assert ids == [one.id, two.id, "mine"]
    found, _ = await board.query_artifacts(FilterConfig(order="created_at"))
    assert [item.id for item in found] == ids


def test_artifact_ids_do_not_depend_on_hidden_artifacts():
    def story(*, secrets):
        def work(inputs):
            shown = [Note(text="a"), Note(text="b")]
            hidden = [Output(Note(text="x"), visibility=SECRET)] * secrets
            return [*hidden, shown[0], *hidden, shown[1]]

        async def test(board, clock):
            worker(board, work)
            for number in range(secrets):
                await board.publish(Receipt(text=f"{number}"), visibility=SECRET, id=f"s{number}")
                await board.publish(
                    Order(number=9), correlation_id="c", visibility=SECRET, id=f"h{number}"
                )
            for number in (1, 2):
                await board.publish(Order(number=number), correlation_id="c", id=f"v{number}")
                await board.run_until_idle()
            return await notes_of(board)

        return play(test)

    plain = story(secrets=0)
    assert len(set(plain)) == 4
    assert story(secrets=2) == plain


def test_every_tick_of_a_schedule_is_called_after_it():
    def story():
        async def test(board, clock):
            ticking = Seen()
            board.agent("worker").schedule(every=60, max_repeats=3).with_engines(ticking.engine)
            await board.start()
            for _ in range(4):
                await board.run_until_idle()
                await clock.advance(60)
            found, _ = await board.query_artifacts(FilterConfig(types={"Tick"}))
            return [item.id for item in found]

        return play(test)

    ticks = story()
    assert len(set(ticks)) == 3
    assert story() == ticks


async def test_fork_publishes_new_artifacts_and_keeps_copied_ones(board):
    worker(board, lambda inputs: Note(text="x"))
    made = await board.publish(Order(number=1), id="order")
    await board.run_until_idle()
    host = await board.host()
    child = await host.fork(made.run, scope=board.scope, turn=1)
    await board.run_until_idle()
    names = {}
    for correlation in (made.correlation_id, child):
        found, _ = await board.query_artifacts(FilterConfig(correlation_id=correlation))
        names[correlation] = {item.type: item.id for item in found}
    ours, theirs = names.values()
    assert ours["Order"] == theirs["Order"] == "order"
    assert ours["Note"] != theirs["Note"]
    # By its id the original is found, and published again it is still the same.
    assert (await host.artifact(board.name, "order", scope=board.scope)).run == made.run
    assert await board.publish(Order(number=1), id="order") == made


def test_post_publish_receives_only_published_artifacts():
    told = []

    class Telling(Component):
        def artifact_published(self, artifact):
            return BLOCK if artifact.payload["text"] == "b" else None

        def post_publish(self, ctx, artifacts):
            told.extend((artifact.payload["text"], artifact.id) for artifact in artifacts)

    async def test(board, clock):
        worker(board, lambda inputs: [Note(text=letter) for letter in "abc"], Telling())
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert told == list(zip("ac", await notes_of(board), strict=True))

    play(test)


def test_each_attempt_has_its_own_key():
    keys = []

    class Late(Component):
        def before_schedule(self, ctx, inputs):
            keys.append(ctx.key)
            return DEFER if len(keys) < 3 else None

    async def test(board, clock):
        worker(board, lambda inputs: Note(text="x"), Late())
        await board.publish(Order(number=1))
        for _ in range(3):
            await board.run_until_idle()
            await clock.advance(2)
        assert len(await notes_of(board)) == 1

    play(test)
    assert len(keys) == len(set(keys)) == 3


def test_functions_of_agents_that_may_not_see_an_artifact_never_get_it():
    asked = []

    def wants(note: Note) -> bool:
        asked.append(("where", note.text))
        return True

    def key(note: Note) -> str:
        asked.append(("key", note.text))
        return note.text

    async def test(board, clock):
        seen = Seen()
        other = board.agent("other").consumes(Note, where=wants)
        other.consumes(Note, Order, join=JoinSpec(key, within=5)).with_engines(seen.engine)
        worker(board, lambda inputs: [Note(text="b"), Output(Note(text="y"), visibility=SECRET)])
        await board.publish(Note(text="a"))
        await board.publish(Note(text="x"), visibility=SECRET)
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert seen.calls == [("a",), ("b",)]

    play(test)
    assert sorted(asked) == [("key", "a"), ("key", "b"), ("where", "a"), ("where", "b")]


@artifact
class Registered(BaseModel):
    text: str


async def test_registered_type_is_known_to_an_older_correlation(board):
    board.agent("worker").consumes(Order).with_engines(Seen().engine)
    await board.publish(Order(number=1), correlation_id="c")
    await board.publish(Registered(text="a"), correlation_id="c")
    with pytest.raises(UsageError, match="text"):
        await board.publish("Registered", {"text": 3}, correlation_id="c")
    found, _ = await board.query_artifacts(FilterConfig(correlation_id="c"))
    assert [item.type for item in found] == ["Registered", "Order"]


async def test_registered_type_is_known_to_filters_and_by_name(board):
    seen = Seen()
    agent = board.agent("worker").consumes(Order)
    agent.with_context_filter(types={"Registered"}).with_engines(seen.engine)
    await board.publish("Registered", {"text": "a"})
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert seen.texts == [["a"]]


@pytest.mark.parametrize("given", [RecentProvider, lambda: None, 3])
def test_provider_that_cannot_be_called_with_a_request_is_refused(given):
    with pytest.raises(UsageError, match=r"is a class|is not a provider"):
        Board().agent("worker").with_context(given)


def test_filter_is_given_whole_or_by_its_fields():
    whole = Board().agent("worker").with_context_filter(FilterConfig(types={"Order"}), limit=3)
    fields = Board().agent("worker").with_context_filter(types={"Order"}, limit=3)
    assert whole.declared() == fields.declared()
    with pytest.raises(UsageError, match="types is given beside a FilterConfig"):
        Board().agent("worker").with_context_filter(FilterConfig(), types={"Order"})
    with pytest.raises(UsageError, match="typos"):
        Board().agent("worker").with_context_filter(typos={"Order"})
