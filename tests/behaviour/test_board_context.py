"""Context on a board: what providers give, to whom, and what is recorded of it."""

import asyncio
import sys
import threading
import time
from datetime import timedelta

import pytest
from pydantic import ValidationError

from support.boards import Note, Order, Receipt, Seen, play
from weft.board import (
    AfterVisibility,
    Board,
    Component,
    CompositeProvider,
    ContextSlice,
    DefaultCorrelationProvider,
    EmptyProvider,
    FilterConfig,
    FilteredContextProvider,
    FunctionEngine,
    LabelledVisibility,
    PrivateVisibility,
    PublicVisibility,
    RecentProvider,
    RedactingProvider,
    StateDelegatingProvider,
    SummarisingProvider,
    TagFilter,
    TenantVisibility,
    TimeWindowProvider,
)
from weft.context.providers import name_of
from weft.engine.events import ContextFetched
from weft.errors import UsageError
from weft.testing import FunctionModel


async def notes(board: Board, *texts: str, **options) -> None:
    for text in texts:
        await board.publish(Note(text=text), **options)
        await board.run_until_idle()


def reader(board: Board, provider=None, *, labels=(), **options) -> Seen:
    seen = Seen()
    made = board.types(Note, Receipt).agent("reader").consumes(Order).labels(*labels)
    if provider is not None:
        made.with_context(provider, **options)
    made.with_engines(seen.engine)
    return seen


async def shown(board: Board, seen: Seen, correlation: str = "c") -> list:
    await board.publish(Order(number=99), correlation_id=correlation)
    await board.run_until_idle()
    assert await board.missed() == []
    return seen.texts[-1]


async def fetched(board: Board, correlation: str) -> list[dict]:
    host = await board.host()
    run = await host.run_of(board.name, correlation, scope=board.scope)
    events = [event async for event in host.events(run, scope=board.scope)]
    return [event.data.board for event in events if isinstance(event.data, ContextFetched)]


async def test_default_provider_returns_correlation_newest_first(board):
    seen = reader(board)
    await notes(board, "a", "b", correlation_id="c")
    await notes(board, "elsewhere", correlation_id="d")
    assert await shown(board, seen) == [99, "b", "a"]


async def test_default_provider_returns_the_whole_correlation(monkeypatch, board):
    monkeypatch.setattr("weft.context.slices.MAX_LIMIT", 2)  # They are read page by page.

    seen = reader(board)
    await notes(board, *"abcde", correlation_id="c")
    assert await shown(board, seen) == [99, *"edcba"]


def test_default_prompt_keeps_the_newest_artifacts_that_fit():
    sent = []

    def say(request):
        sent.append(request.messages[0]["content"])
        return '{"text": "ok"}'

    async def test(board, clock):
        board.types(Note).agent("writer").consumes(Order).publishes(Receipt)
        for number in range(60):
            await board.publish(Note(text=f"{number:02}" + "x" * 998), correlation_id="c")
        made = await board.publish(Order(number=1), correlation_id="c")
        await board.run_until_idle()
        host = await board.host()
        events = [event async for event in host.events(made.run, scope=board.scope)]
        return next(event.data.manifest for event in events if hasattr(event.data, "manifest"))

    manifest = play(test, model=FunctionModel(say))
    (left,) = (event for event in manifest["left_out"] if event["kind"] == "board")
    assert left["reason"] == "over the budget of 16000 tokens"
    assert 0 < len(left["names"]) < 60
    assert "59xx" in sent[0]
    assert "00xx" not in sent[0]


@pytest.mark.parametrize(("own", "filtered"), [(2, 5), (5, 2), (2, None), (None, 2)])
async def test_smaller_limit_of_provider_and_filter_counts(own, filtered, board):
    filters = FilterConfig(types={"Note"}, limit=filtered)
    seen = reader(board, FilteredContextProvider(filters, limit=own))
    await notes(board, *"abcdef", correlation_id="c")
    assert await shown(board, seen) == ["f", "e"]


async def test_plain_provider_does_not_block_the_loop_and_is_limited(monkeypatch, board):
    monkeypatch.setattr("weft.runtime.board.preparing.PROVIDER_SECONDS", 0.2)
    release = threading.Event()

    def blocking(request):
        release.wait(10)
        return ContextSlice([])

    composite = CompositeProvider(blocking, EmptyProvider())
    seen = reader(board, composite, fallback=EmptyProvider())
    begun = time.monotonic()
    await board.publish(Order(number=1), correlation_id="c")
    await board.run_until_idle()
    release.set()
    assert time.monotonic() - begun < 5
    (given,) = await fetched(board, "c")
    assert "took longer than 0.2 seconds" in given["slices"][0]["error"]
    assert seen.calls == [(1,)]


async def test_plain_provider_fails_like_an_async_one(board):
    def stopping(request):
        raise StopIteration

    reader(board, stopping)
    await board.publish(Order(number=1), correlation_id="c")
    await board.run_until_idle()
    (missed,) = await board.missed()
    assert "the code raised StopIteration" in missed.detail


async def test_providers_and_engines_share_the_state_of_an_activation(board):
    async def first(request):
        request.ctx.state["mood"] = "calm"
        return ContextSlice([])

    async def failing(request):
        request.ctx.state["mood"] = "lost"
        raise ValueError("no")

    moods = []

    async def second(request):
        moods.append(request.ctx.state.get("mood"))
        return ContextSlice([])

    async def work(inputs, ctx):
        moods.append(ctx.state["mood"])

    engines = [FunctionEngine(work, item) for item in (first, failing, second)]
    made = board.agent("reader").consumes(Order).with_engines(*engines)
    made.with_context(EmptyProvider(), fallback=EmptyProvider())
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert moods == ["calm"] * 4


async def test_failed_provider_leaves_a_span_with_its_error(board):
    async def failing(request):
        raise ValueError("no database")

    reader(board, failing)
    await board.publish(Order(number=1), correlation_id="c")
    await board.run_until_idle()
    (span,) = [span for span in await board.spans("c") if span.kind == "provider"]
    assert (span.name, span.failed) == ("failing", True)
    assert span.error == "the provider failing failed: ValueError: no database"


async def test_provider_gets_its_config(board):
    configs = []

    async def provider(request):
        configs.append(request.config)
        return ContextSlice([])

    reader(board, provider, config={"region": "eu"})
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert configs == [{"region": "eu"}]
    assert board.build().board.agents[0].context_config == {"region": "eu"}


@pytest.mark.parametrize(
    "visibility",
    [
        PublicVisibility(),
        PrivateVisibility(agents=("reader",)),
        LabelledVisibility(labels=("a",)),
        TenantVisibility(tenant="local"),
        AfterVisibility(seconds=5, then=PrivateVisibility(agents=("reader",))),
    ],
)
async def test_envelope_says_who_may_see_it(visibility, board, clock):
    given = []

    async def work(inputs, ctx):
        given.extend(inputs.artifacts)

    board.agent("reader").consumes(Order).labels("a").with_engines(FunctionEngine(work))
    await board.publish(Order(number=1), visibility=visibility)
    await board.run_until_idle()
    await clock.advance(10)
    await board.run_until_idle()
    found, _ = await board.query_artifacts()
    assert [item.visibility for item in (*given, *found)] == [visibility, visibility]


async def test_the_default_is_bounded(board):
    seen = reader(board, DefaultCorrelationProvider(limit=2))
    await notes(board, "a", "b", "c", correlation_id="c")
    assert await shown(board, seen) == [99, "c"]


def test_filtered_by_type_tags_producer_time_text_limit_and_order():
    async def given(board, clock, filters, **options):
        seen = reader(board, FilteredContextProvider(filters, **options))
        board.agent("maker").consumes(Receipt).publishes(Note).with_engines(
            FunctionEngine(lambda inputs: Note(text="made"))
        )
        await notes(board, "plain")
        await notes(board, "red", tags={"red"})
        await notes(board, "both", tags={"red", "blue"})
        await board.publish(Receipt(text="r"))
        await board.run_until_idle()
        await clock.advance(100)
        await notes(board, "late")
        return await shown(board, seen)

    def run(filters, **options):
        return play(lambda board, clock: given(board, clock, filters, **options))

    only = {"types": {"Note"}}
    assert run(FilterConfig(types={"Receipt"})) == ["r"]
    assert run(FilterConfig(tags=TagFilter(include={"red"}))) == ["both", "red"]
    assert run(FilterConfig(tags=TagFilter(include={"red"}, exclude={"blue"}))) == ["red"]
    assert run(FilterConfig(tags=TagFilter(all_of={"red", "blue"}))) == ["both"]
    assert run(FilterConfig(producers={"maker"})) == ["made"]
    assert run(FilterConfig(text="LAT", **only)) == ["late"]
    assert run(FilterConfig(limit=2, **only)) == ["late", "made"]
    assert run(FilterConfig(**only), limit=1) == ["late"]
    assert run(FilterConfig(order="created_at", limit=1, **only)) == ["plain"]


async def test_filtered_by_partition(board):
    seen = reader(board, FilteredContextProvider(FilterConfig(partition="north")))
    await notes(board, "a", partition="north")
    await notes(board, "b", partition="south")
    await notes(board, "c")
    await notes(board, "d", partition="north")
    assert await shown(board, seen) == ["d", "a"]
    found, total = await board.query_artifacts(FilterConfig(partition="south"))
    assert ([artifact.payload["text"] for artifact in found], total) == (["b"], 1)


async def test_artifacts_page_by_page(board):
    await notes(board.types(Note), "a", "b", "c", "d", "e")

    async def page(offset, **filters):
        wanted = FilterConfig(limit=2, **filters)
        found, total = await board.query_artifacts(wanted, offset=offset)
        return [artifact.payload["text"] for artifact in found], total

    pages = [await page(offset) for offset in (0, 2, 4, 6)]
    assert pages == [(["e", "d"], 5), (["c", "b"], 5), (["a"], 5), ([], 5)]
    assert await page(3, order="created_at") == (["d", "e"], 5)
    for wrong in (-1, 2**60, "2"):
        with pytest.raises(UsageError, match="invalid offset"):
            await board.query_artifacts(offset=wrong)


async def test_a_provider_pages_through_what_its_agent_may_see(board):
    pages = []

    async def paging(request):
        for offset in (0, 1, 2):
            wanted = FilterConfig(types={"Note"}, limit=1)
            found, total = await request.board.query_artifacts(wanted, offset=offset)
            pages.append(([artifact.payload["text"] for artifact in found], total))
        return ContextSlice([])

    seen = reader(board, paging)
    await notes(board, "a")
    await notes(board, "hidden", visibility=PrivateVisibility(agents=("somebody",)))
    await notes(board, "b")
    await shown(board, seen)
    assert pages == [(["b"], 2), (["a"], 2), ([], 2)]


async def test_filtered_by_time(board, clock):
    seen = Seen()
    await notes(board.types(Note), "early")
    await clock.advance(60)
    now = (await board.query_artifacts())[0][0].created_at + timedelta(seconds=30)
    before = Seen()
    for name, noting, span in (
        ("after", seen, {"since": now}),
        ("before", before, {"until": now}),
    ):
        board.agent(name).consumes(Order).with_context_filter(
            filters=FilterConfig(types={"Note"}, **span), limit=5
        ).with_engines(noting.engine)
    await notes(board, "later")
    assert await shown(board, seen) == ["later"]
    assert before.texts == [["early"]]


async def test_recent_and_time_window_look_at_the_whole_board(board, clock):
    window = TimeWindowProvider(seconds=30, limit=9)
    seen = reader(board, CompositeProvider(RecentProvider(2), window))
    await notes(board, "old", "older")
    await clock.advance(60)
    await notes(board, "new", correlation_id="d")
    await clock.advance(1)
    assert await shown(board, seen) == [99, "new"]


class Preparing(Component):
    async def pre_consume(self, ctx, inputs):
        found, _ = await ctx.board.query_artifacts(FilterConfig(types={"Note"}))
        ctx.state["context_snapshot"] = [item.item() for item in found]
        ctx.state["mood"] = "calm"


async def test_state_delegating_gives_what_a_component_has_prepared(board):
    seen = Seen()
    board.agent("reader").consumes(Order).with_utilities(Preparing()).with_context(
        StateDelegatingProvider(key="context_snapshot")
    ).with_engines(seen.engine)
    await notes(board, "a", "b")
    assert await shown(board, seen) == ["b", "a"]


async def test_include_state_keys_adds_them(board):
    seen = Seen()
    board.agent("reader").consumes(Order).with_utilities(Preparing()).with_context_filter(
        filters=FilterConfig(types={"Note"}), include_state_keys={"mood", "missing"}
    ).with_engines(seen.engine)
    await notes(board, "a")
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert [context["type"] for context in seen.contexts[0]] == ["Note", "state"]
    assert seen.contexts[0][1]["payload"] == "calm"


@pytest.mark.parametrize("parallel", [False, True])
async def test_composite_gives_each_artifact_once_in_the_order_of_its_providers(parallel, board):
    only = FilterConfig(types={"Note"})
    seen = reader(
        board,
        CompositeProvider(
            FilteredContextProvider(FilterConfig(order="created_at", limit=1, types={"Note"})),
            FilteredContextProvider(only),
            parallel=parallel,
            limit=3,
        ),
    )
    await notes(board, "a", "b", "c", "d")
    assert await shown(board, seen) == ["a", "d", "c"]


async def test_redacting_drops_and_transforms_and_says_so(board):
    inner = FilteredContextProvider(FilterConfig(types={"Note"}))
    seen = reader(board, RedactingProvider(inner, drop={"secret"}, transform={"text": str.upper}))
    await notes(board, "a")
    await shown(board, seen)
    assert seen.contexts[0][0]["payload"] == {"text": "A"}
    (given,) = await fetched(board, "c")
    assert given["slices"][0]["metadata"]["redacted"] == ["secret", "text"]
    assert "hush" not in str(given)


async def test_summarising_makes_texts_by_template(board):
    inner = FilteredContextProvider(FilterConfig(types={"Note", "Receipt"}))
    provider = SummarisingProvider(inner, templates={"Note": "It says {text}."})
    seen = reader(board, provider)
    await notes(board, "a")
    await board.publish(Receipt(text="r"))
    await shown(board, seen)
    assert [context["payload"] for context in seen.contexts[0]] == [
        {"summary": "Receipt: text: r"},
        {"summary": "It says a."},
    ]


async def test_empty_gives_nothing_and_asks_nothing(board):
    seen = reader(board, EmptyProvider())
    await notes(board, "a", correlation_id="c")
    assert await shown(board, seen) == []
    assert await fetched(board, "c") == []


async def test_providers_nest_in_any_order(board):
    tree = RedactingProvider(
        CompositeProvider(
            SummarisingProvider(RecentProvider(1)),
            RedactingProvider(DefaultCorrelationProvider(), drop={"number"}),
        ),
        drop={"secret"},
    )
    seen = reader(board, tree)
    await notes(board, "a", correlation_id="c")
    await shown(board, seen)
    first, second = seen.contexts[0]
    assert first["payload"] == {"summary": "Order: number: 99, customer: ada, total: 1.0"}
    assert second["payload"] == {"text": "a"}


async def test_a_provider_of_the_subscription_wins_over_that_of_the_engine_and_the_agent(board):
    note, receipt = Seen(), Seen()

    def only(name):
        return FilteredContextProvider(FilterConfig(types={name}))

    board.types(Note, Receipt)
    board.agent("a").consumes(Order).with_context(only("Order")).with_engines(
        FunctionEngine(note.engine.function, context_provider=only("Note"))
    )
    board.agent("b").consumes(Order, context_provider=only("Receipt")).with_context(
        only("Order")
    ).with_engines(FunctionEngine(receipt.engine.function, context_provider=only("Note")))
    await notes(board, "n")
    await board.publish(Receipt(text="r"))
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert (note.texts, receipt.texts) == ([["n"]], [["r"]])


async def raising(request):
    raise ValueError("broken")


async def cancelling(request):
    raise asyncio.CancelledError


async def exiting(request):
    sys.exit(3)


async def closing(request):
    raise GeneratorExit


side_by_side = CompositeProvider(exiting, cancelling, parallel=True)


async def hanging(request):
    await asyncio.sleep(3600)


async def nonsense(request):
    return ["no slice"]


async def unfit(request):
    return ContextSlice([{"payload": object()}])


@pytest.mark.parametrize(
    "provider", [raising, cancelling, exiting, closing, side_by_side, hanging, nonsense, unfit]
)
def test_a_provider_that_fails_is_a_recorded_error_or_its_fallback_serves(provider, monkeypatch):
    monkeypatch.setattr("weft.runtime.board.preparing.PROVIDER_SECONDS", 0.05)

    async def alone(board, clock):
        seen = reader(board, provider)
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert seen.calls == []
        (missed,) = await board.missed()
        assert missed.why == "failed"
        assert f"the provider {name_of(provider)}" in missed.detail

    async def with_fallback(board, clock):
        seen = reader(board, provider, fallback=RecentProvider(1))
        await board.publish(Order(number=1), correlation_id="c")
        await board.run_until_idle()
        assert seen.texts == [[1]]
        (given,) = await fetched(board, "c")
        assert given["slices"][0]["instead_of"] == name_of(provider)
        assert f"the provider {name_of(provider)}" in given["slices"][0]["error"]

    play(alone)
    play(with_fallback)


def test_a_composite_cannot_be_changed_to_contain_itself():
    composite = CompositeProvider(RecentProvider())
    with pytest.raises(ValidationError, match="frozen"):
        composite.providers = (composite,)


@pytest.mark.parametrize("count", [0, 21])
def test_a_composite_has_one_to_twenty_providers(count):
    with pytest.raises(ValidationError, match="providers"):
        CompositeProvider(*[RecentProvider()] * count)


class Foreign:
    def __init__(self, id_: str) -> None:
        self._id = id_

    async def __call__(self, request):
        given = await DefaultCorrelationProvider()(request)
        return ContextSlice(
            [*given.items, {"id": self._id, "type": "Note", "payload": {"text": "?"}}]
        )


async def test_items_that_the_agent_may_not_see_are_taken_out(board):
    hidden = PrivateVisibility(agents=("boss",))
    made = await board.types(Note).publish(Note(text="top"), visibility=hidden)
    for id_ in (made.id, "there is no such artifact"):
        seen = Seen()
        board.agent(f"reader{id_}").consumes(Order).with_context(Foreign(id_)).with_engines(
            seen.engine
        )
    await board.publish(Order(number=1), correlation_id="c")
    await board.run_until_idle()
    for given in await fetched(board, "c"):
        assert [item["type"] for item in given["slices"][0]["items"]] == ["Order"]
        assert given["slices"][0]["foreign"] == 1


class Mutating:
    async def __call__(self, request):
        given = await request.board.find(FilterConfig(types={"Order"}))
        given[0].payload["number"] = -1
        request.ctx.state["x"] = 1
        with pytest.raises(AttributeError):
            request.correlation_id = "other"
        assert not hasattr(request.board, "publish")
        assert not hasattr(request.ctx, "host")
        return ContextSlice([])


async def test_a_provider_changes_nothing_by_what_it_is_given(board):
    seen = reader(board, Mutating())
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await board.missed() == []
    assert seen.calls == [(1,)]
    assert (await board.query_artifacts())[0][0].payload["number"] == 1


@pytest.mark.parametrize(
    ("visibility", "labels", "sees"),
    [
        (None, (), True),
        (PrivateVisibility(agents=("reader", "boss")), (), True),
        (PrivateVisibility(agents=("boss",)), (), False),
        (LabelledVisibility(labels=("a", "b")), ("a", "b", "c"), True),
        (LabelledVisibility(labels=("a", "b")), ("a",), False),
        (TenantVisibility(), (), True),
        (TenantVisibility(tenant="local"), (), True),
        (TenantVisibility(tenant="other"), (), False),
        (AfterVisibility(seconds=5), (), True),
        (AfterVisibility(seconds=50), (), False),
        (AfterVisibility(seconds=5, then=PrivateVisibility(agents=("boss",))), (), False),
        (AfterVisibility(seconds=5, then=AfterVisibility(seconds=6)), (), False),
        (AfterVisibility(seconds=5, then=AfterVisibility(seconds=4)), (), True),
    ],
)
async def test_every_policy_lets_see_and_hides(visibility, labels, sees, board, clock):
    seen = reader(board, RecentProvider(5), labels=labels)
    await notes(board, "n", visibility=visibility)
    made = (await board.query_artifacts())[0][0]
    await clock.advance(10)
    assert await shown(board, seen) == ([99, "n"] if sees else [99])
    host = await board.host()
    why = await host.why("board", made.id, "reader", scope=board.scope)
    assert (why is None) is sees


async def test_the_limit_counts_only_what_can_be_seen(board, clock):
    seen = reader(board, RecentProvider(2))
    await notes(board, "a", "b")
    await notes(board, "x", "y", "z", visibility=PrivateVisibility(agents=("boss",)))
    await clock.advance(1)
    assert await shown(board, seen) == [99, "b"]


def test_a_delay_survives_a_restart(tmp_path):
    seen = Seen()

    def made(clock) -> Board:
        board = Board(journal=tmp_path / "runs.db", clock=clock)
        board.agent("worker").consumes(Note).with_engines(seen.engine)
        return board

    async def both():
        from weft.testing.clock import ManualClock

        clock = ManualClock()
        async with made(clock) as board:
            await board.publish(Note(text="n"), visibility=AfterVisibility(seconds=60))
            await board.run_until_idle()
        await clock.advance(61)
        async with made(clock) as board:
            await board.start()
            assert await board.run_until(lambda _: bool(seen.calls), timeout=5)

    asyncio.run(both())
    assert seen.calls == [("n",)]


def test_a_model_sees_the_slice_and_the_manifest_says_who_furnished_it():
    sent = []

    def say(request):
        sent.append(request.messages[0]["content"])
        return '{"text": "ok"}'

    async def test(board, clock):
        inner = FilteredContextProvider(FilterConfig(types={"Note"}))
        made = board.types(Note).agent("writer").consumes(Order).publishes(Receipt)
        made.with_context(RedactingProvider(inner, drop={"secret"}))
        await notes(board, "remember")
        await board.publish(Order(number=1), correlation_id="c")
        await board.run_until_idle()
        assert await board.missed() == []
        host = await board.host()
        run = await host.run_of(board.name, "c", scope=board.scope)
        events = [event async for event in host.events(run, scope=board.scope)]
        (manifest,) = (event.data.manifest for event in events if hasattr(event.data, "manifest"))
        (entry,) = (segment for segment in manifest["segments"] if segment["kind"] == "board")
        assert entry["provider"] == "RedactingProvider(FilteredContextProvider)"
        assert entry["redacted"] == ["secret"]
        assert len(entry["items"]) == 1
        (given,) = await fetched(board, "c")
        assert given["slices"][0]["started_at"] == clock.now()
        assert given["slices"][0]["ms"] >= 0

    play(test, model=FunctionModel(say))
    assert "remember" in sent[0]
    assert "hush" not in sent[0]


def test_the_slice_is_fetched_once_for_all_engines():
    asked = []

    async def counting(request):
        asked.append(request.agent.name)
        return await DefaultCorrelationProvider()(request)

    async def test(board, clock):
        one, two = Seen(Note(text="x")), Seen(Note(text="y"))
        board.agent("worker").consumes(Order).publishes(Note).with_context(counting).with_engines(
            one.engine, two.engine
        )
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert one.contexts == two.contexts

    play(test)
    assert asked == ["worker"]


def test_parts_over_the_budget_are_left_out_and_listed():
    sent = []

    def say(request):
        sent.append(request.messages[0]["content"])
        return '{"text": "ok"}'

    async def run():
        from weft.ports.scope import Scope
        from weft.testing import ManualClock, host_for

        board = Board(name="desk")
        made = board.types(Note).agent("writer").consumes(Order).publishes(Receipt)
        made.with_context_filter(filters=FilterConfig(types={"Note"}))
        spec = board.build()
        budget = {"kind": "board", "max_tokens": 30}
        data = spec.model_dump(mode="json", by_alias=True)
        data["agents"][0]["context"] = [budget, {"kind": "history"}]
        scope = Scope("shop", "ann")
        clock = ManualClock()
        declared = type(spec).model_validate(data)
        async with host_for(declared, FunctionModel(say), clock=clock) as host:
            for text in ("first", "second", "third"):
                await host.publish("desk", "Note", {"text": text}, scope=scope)
                await clock.advance(1)
            made = await host.publish("desk", "Order", {"number": 1}, scope=scope)
            await host.quiet()
            events = [event async for event in host.events(made.run, scope=scope)]
            return next(event.data.manifest for event in events if hasattr(event.data, "manifest"))

    manifest = asyncio.run(run())
    (left,) = (event for event in manifest["left_out"] if event["kind"] == "board")
    assert left["reason"] == "over the budget of 30 tokens"
    assert len(left["names"]) == 2
    assert "first" not in sent[0]


async def test_redacting_what_is_summarised_redacts_first(board):
    inner = FilteredContextProvider(FilterConfig(types={"Note"}))
    tree = RedactingProvider(CompositeProvider(SummarisingProvider(inner)), drop={"secret"})
    seen = reader(board, tree)
    await notes(board, "a")
    await shown(board, seen)
    assert seen.contexts[0][0]["payload"] == {"summary": "Note: text: a"}
    (given,) = await fetched(board, "c")
    assert given["slices"][0]["metadata"]["redacted"] == ["secret"]


async def test_slice_is_bounded(board):
    def many(request):
        return ContextSlice([{"payload": {"n": number}} for number in range(10_500)])

    seen = reader(board, many)
    await board.publish(Order(number=1), correlation_id="c")
    await board.run_until_idle()
    assert len(seen.contexts[0]) == 10_000
    (given,) = await fetched(board, "c")
    assert given["slices"][0]["dropped"] == 500


def test_other_woken_agents_are_hidden_from_agents():
    async def test(board, clock):
        async def meta(request):
            found, _ = await request.board.query_artifacts(embed_meta=True)
            return ContextSlice([{"payload": {"by": list(item.consumed_by)}} for item in found])

        other = Seen()
        board.agent("other").consumes(Order, priority=5).with_engines(other.engine)
        seen = reader(board, meta)
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert seen.contexts == [[{"payload": {"by": ["reader"]}}]]

    play(test, max_concurrency=1)
