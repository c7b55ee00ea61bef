"""Meanings on a board: what wakes an agent because of what it is about, and what it is shown."""

import asyncio

import pytest

from support.boards import Note, Order, Receipt, Seen, play
from weft.board import (
    Board,
    CompositeProvider,
    FilterConfig,
    FunctionEngine,
    PrivateVisibility,
    RecentProvider,
    RedactingProvider,
    SemanticContextProvider,
)
from weft.context.similarity import Similarity, text_of
from weft.engine.events import ContextFetched
from weft.errors import RetrievalError, SetupError, UsageError
from weft.inspect.replay import check_replay
from weft.testing import WordEmbedder

ABOUT = "refund of my money"


class Failing(WordEmbedder):
    """Embeds a few times, and then no more."""

    def __init__(self, error, after=0):
        super().__init__()
        self._error, self._left = error, after

    async def embed(self, texts):
        self._left -= 1
        if self._left < 0:
            raise self._error
        return await super().embed(texts)


def words(test, **options):
    return play(test, **{"embedder": WordEmbedder(), **options})


# -- subscriptions


def waiting(board, *types, publishes=(), result=None, **options):
    seen = Seen(result)
    agent = board.agent("worker").consumes(*(types or (Note,)), **options)
    agent.publishes(*publishes).with_engines(seen.engine)
    return seen


async def replays(board, correlation):
    host = await board.host()
    run = await host.run_of(board.name, correlation, scope=board.scope)
    events = [event async for event in host.events(run, scope=board.scope)]
    workflow = await host.workflow(run, scope=board.scope)
    return check_replay(workflow, run, events) == []


def test_semantic_match_wakes_only_by_what_is_about_it():
    async def test(board, clock):
        seen = waiting(board, semantic_match=ABOUT, threshold=0.4)
        await board.publish(Note(text="the refund of my money, please"))
        made = await board.publish(Note(text="the weather is fine"))
        await board.run_until_idle()
        assert seen.calls == [("the refund of my money, please",)]
        assert await board.missed() == []
        assert await replays(board, made.correlation_id)

    words(test)


@pytest.mark.parametrize(("options", "calls"), [({"threshold": 0.1}, 1), ({}, 0)])
def test_the_threshold_says_how_near_and_is_half_by_default(options, calls):
    async def test(board, clock):
        seen = waiting(board, semantic_match=ABOUT, **options)
        await board.publish(Note(text="a refund of what was the total last year, and of this"))
        await board.run_until_idle()
        assert len(seen.calls) == calls

    words(test)


def long(payload):
    return len(payload.text) > 10


@pytest.mark.parametrize("where", [long, "text != 'refund'"])
def test_where_must_hold_as_well_and_comes_first(where):
    async def test(board, clock):
        seen = waiting(board, where=where, semantic_match=ABOUT, threshold=0.2)
        await board.publish(Note(text="refund"))
        assert board_embedder.texts == []
        await board.publish(Note(text="refund of money"))
        await board.publish(Note(text="weather is fine"))
        await board.run_until_idle()
        assert seen.calls == [("refund of money",)]

    board_embedder = WordEmbedder()
    words(test, embedder=board_embedder)


def test_artifacts_of_agents_are_compared_only_for_agents_that_see_them():
    async def test(board, clock):
        seen = waiting(board, semantic_match=ABOUT, threshold=0.2)
        texts = iter(["my money back", "fine weather"])
        board.agent("maker").consumes(Order).publishes(Note).with_engines(
            FunctionEngine(lambda inputs: Note(text=next(texts)))
        )
        for number in (1, 2):
            await board.publish(Order(number=number))
            await board.run_until_idle()
        assert seen.calls == [("my money back",)]
        secret = Note(text="canary money")
        await board.publish(secret, visibility=PrivateVisibility(agents=("maker",)))
        await board.run_until_idle()
        assert len(seen.calls) == 1
        assert "canary" not in str(embedder.texts)

    embedder = WordEmbedder()
    words(test, embedder=embedder)


@pytest.mark.parametrize("error", [RetrievalError("down"), ValueError("odd"), TimeoutError()])
def test_embeddings_that_fail_are_a_recorded_error_and_no_match(error):
    async def test(board, clock):
        seen = waiting(board, semantic_match=ABOUT, threshold=0.0)
        made = await board.publish(Note(text="refund"))
        await board.run_until_idle()
        assert seen.calls == []
        (missed,) = await board.missed()
        assert (missed.why, missed.artifacts) == ("predicate", (made.id,))
        assert "semantic_match could not be evaluated: " in missed.detail
        with pytest.raises(UsageError, match="semantic_match could not be evaluated"):
            await board.invoke("worker", Note(text="refund"))

    words(test, embedder=Failing(error))


def refused(board, what):
    async def test(_board, _clock):
        with pytest.raises(SetupError, match=what) as found:
            await board.publish(Note(text="refund"))
        assert "weft embeddings install" in found.value.hint
        assert "WEFT_EMBEDDINGS" in found.value.hint
        host = await board.host()
        assert await host.runs(scope=board.scope) == []
        with pytest.raises(SetupError):
            await board.start()

    play(test, board)


def test_without_embeddings_nothing_is_published(monkeypatch):
    monkeypatch.setenv("WEFT_EMBEDDINGS", "none")
    board = Board(model="sample")
    waiting(board, semantic_match=ABOUT)
    refused(board, "a subscription of worker has semantic_match")
    board = Board(model="sample")
    inner = RedactingProvider(SemanticContextProvider("x"), drop={"secret"})
    board.agent("a").consumes(Note).with_context(inner, fallback=RecentProvider())
    refused(board, "a provider of a is semantic")


async def test_invalid_setting_is_reported_before_publishing(monkeypatch, tmp_path, board):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    monkeypatch.setenv("WEFT_EMBEDDINGS", "local")

    waiting(board, semantic_match=ABOUT)
    with pytest.raises(SetupError, match="the local embedding model is not installed"):
        await board.publish(Note(text="refund"))


def test_a_threshold_without_semantic_match_is_refused():
    async def test(board, clock):
        with pytest.raises(UsageError, match='"threshold" has no effect without "semantic_match"'):
            waiting(board, threshold=0.5)

    words(test)


# -- the provider


def reader(board, provider, **options):
    seen = Seen()
    made = board.types(Note, Receipt).agent("reader").consumes(Order)
    made.with_context(provider, **options).with_engines(seen.engine)
    return seen


async def notes(board, *texts, **options):
    for text in texts:
        await board.publish(Note(text=text), **options)
        await board.run_until_idle()


async def shown(board, seen, **order):
    await board._clock.advance(1)
    await board.publish(Order(number=99, **order), correlation_id="c")
    await board.run_until_idle()
    assert await board.missed() == []
    return seen.texts[-1]


async def slices(board, correlation="c"):
    host = await board.host()
    run = await host.run_of(board.name, correlation, scope=board.scope)
    events = [event async for event in host.events(run, scope=board.scope)]
    found = [event.data.board for event in events if isinstance(event.data, ContextFetched)]
    return found[-1]["slices"]


TEXTS = ("tea and rain", "rain rain rain", "sun", "rain and sun and tea")


def test_it_gives_what_is_nearest_to_the_query_of_the_whole_board():
    async def test(board, clock):
        seen = reader(board, SemanticContextProvider(query="rain"))
        await notes(board, *TEXTS)
        assert await shown(board, seen) == [TEXTS[1], TEXTS[0], TEXTS[3]]
        (given,) = await slices(board)
        assert given["provider"] == "SemanticContextProvider"
        assert given["metadata"]["compared"] == 4
        assert list(given["metadata"]["similarity"].values()) == sorted(
            given["metadata"]["similarity"].values(), reverse=True
        )
        assert await replays(board, "c")

    words(test)


def test_limit_and_threshold_bound_it():
    def given(**options):
        async def test(board, clock):
            seen = reader(board, SemanticContextProvider("rain", **options))
            await notes(board, *TEXTS)
            return await shown(board, seen)

        return words(test)

    assert given(limit=1) == [TEXTS[1]]
    assert given(threshold=0.48) == [TEXTS[1], TEXTS[0]]
    assert len(given(threshold=0.0)) == 4


def test_filters_say_what_is_compared_and_how_many_of_the_newest():
    def given(**filters):
        async def test(board, clock):
            provider = SemanticContextProvider("rain", threshold=0, filters=FilterConfig(**filters))
            seen = reader(board, provider)
            await notes(board, "rain", tags={"old"})
            await notes(board, "sun", "wind")
            return await shown(board, seen)

        return words(test)

    assert given(tags={"include": ("old",)}) == ["rain"]
    assert set(given(limit=3)) == {"sun", "wind"}, "the order that woke it is one of the newest"


@pytest.mark.parametrize(
    ("options", "first"), [({"query_field": "customer"}, "rain ada"), ({}, "99 1.0 boss")]
)
def test_query_field_or_all_that_the_inputs_say_is_the_query(options, first):
    async def test(board, clock):
        seen = reader(board, SemanticContextProvider(**options, threshold=0.01))
        await notes(board, "99 1.0 boss", "rain ada")
        assert (await shown(board, seen, customer="ada"))[0] == first
        assert 99 not in seen.texts[-1], "what has woken it, it has anyway"

    words(test)


def test_only_what_is_visible_is_compared():
    async def test(board, clock):
        seen = reader(board, SemanticContextProvider("rain"))
        await notes(board, "rain canary", visibility=PrivateVisibility(agents=("other",)))
        await notes(board, "rain")
        assert await shown(board, seen) == ["rain"]
        assert "canary" not in str(embedder.texts)
        assert (await slices(board))[0]["metadata"]["compared"] == 1

    embedder = WordEmbedder()
    words(test, embedder=embedder)


def test_it_nests_like_the_others():
    async def test(board, clock):
        both = CompositeProvider(SemanticContextProvider("rain", limit=1), RecentProvider(2))
        seen = reader(board, RedactingProvider(both, drop={"secret"}))
        await notes(board, "rain", "sun")
        assert await shown(board, seen) == ["rain", 99, "sun"]
        assert "secret" not in seen.contexts[-1][0]["payload"]

    words(test)


def test_every_text_is_embedded_once():
    async def test(board, clock):
        seen = reader(board, SemanticContextProvider("rain"))
        await notes(board, *TEXTS)
        for _ in range(3):
            await shown(board, seen)
        assert embedder.texts.count("rain") == 1
        assert embedder.texts.count(f"{TEXTS[0]}\nhush") == 1

    embedder = WordEmbedder()
    words(test, embedder=embedder)


@pytest.mark.parametrize("with_fallback", [True, False])
def test_embeddings_that_fail_are_a_recorded_error_or_the_fallback_serves(with_fallback):
    async def test(board, clock):
        options = {"fallback": RecentProvider(1)} if with_fallback else {}
        seen = reader(board, SemanticContextProvider("rain"), **options)
        await notes(board, "rain")
        await clock.advance(1)
        await board.publish(Order(number=1), correlation_id="c")
        await board.run_until_idle()
        if with_fallback:
            assert seen.texts == [[1]]
            (given,) = await slices(board)
            assert "RetrievalError: down" in given["error"]
        else:
            assert seen.calls == []
            (missed,) = await board.missed()
            assert missed.why == "failed"
            assert "RetrievalError: down" in missed.detail

    words(test, embedder=Failing(RetrievalError("down")))


def test_inputs_without_the_field_are_a_fault():
    async def test(board, clock):
        made = board.agent("reader").consumes(Order).consumes(Note)
        seen = Seen()
        made.with_context(SemanticContextProvider(query_field="customer")).with_engines(seen.engine)
        await board.publish(Note(text="rain"))
        await board.run_until_idle()
        assert seen.calls == []
        (missed,) = await board.missed()
        assert 'no field "customer" with a text' in missed.detail

    words(test)


# -- comparing


def test_payload_conditions():
    payload = {"a": "x", "b": [1, {"c": None, "d": True}, " "], "e": {"f": 2.5}}
    assert text_of(payload) == "x\n1\n2.5"


def of(embedder, query, *texts):
    return asyncio.run(Similarity(embedder).of(query, texts))


def test_empty_texts_match_nothing_and_long_texts_are_cut():
    embedder = WordEmbedder()
    assert of(embedder, " ", "a") == [0.0]
    assert of(embedder, "a", "", " ") == [0.0, 0.0]
    assert of(embedder, "a") == []
    assert embedder.texts == []
    assert of(embedder, "a", "", "a", "a " * 80_000) == [0.0, 1.0, 1.0]
    assert max(map(len, embedder.texts)) == 100_000


class Odd(WordEmbedder):
    async def embed(self, texts):
        return (await super().embed(texts)) * float("nan")


class Short(WordEmbedder):
    async def embed(self, texts):
        return (await super().embed(texts))[:-1]


class Exiting(WordEmbedder):
    async def embed(self, texts):
        raise SystemExit(3)


def test_an_embedder_that_gives_nonsense_makes_nothing_near():
    assert of(Odd(), "a", "a") == [0.0]
    with pytest.raises(RetrievalError, match="1 vectors for 2 texts"):
        of(Short(), "a", "b")
    with pytest.raises(RetrievalError, match="a run cannot end the process"):
        of(Exiting(), "a", "b")


async def test_many_texts_are_embedded_in_parts_and_few_are_kept(monkeypatch):
    monkeypatch.setattr("weft.context.similarity.KEPT", 10)
    monkeypatch.setattr("weft.context.similarity.AT_ONCE", 4)

    embedder = WordEmbedder()
    similarity = Similarity(embedder)
    texts = [f"word{number}" for number in range(20)]
    assert (await similarity.of("word3", texts))[3] == 1.0
    assert len(embedder.texts) == 20
    await similarity.of("word19", texts[11:])
    assert len(embedder.texts) == 20
    await similarity.of("word0", texts[:1])
    assert len(embedder.texts) == 21


async def test_vectors_made_before_a_failure_are_kept(monkeypatch):
    monkeypatch.setattr("weft.context.similarity.AT_ONCE", 2)

    embedder = Failing(RetrievalError("down"), after=1)
    similarity = Similarity(embedder)
    with pytest.raises(RetrievalError):
        await similarity.of("a", ["b", "c"])
    embedder._left = 9
    await similarity.of("a", ["b", "c"])
    assert embedder.texts == ["a", "b", "c"]
