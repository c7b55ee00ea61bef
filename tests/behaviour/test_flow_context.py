"""What steps of flows are shown: declared sources, assemblers, and what goes wrong with them."""

import asyncio
from datetime import date
from types import ModuleType

import pytest
from pydantic import BaseModel

from support.flow_hosts import SCOPE, FlowPlay, derived, step
from weft.adapters.sql import SqliteStore
from weft.board import Board, artifact
from weft.context.agent_step import AgentStep, ContextAssembler, StepContext
from weft.context.step_context import (
    AssembledContext,
    AssembledContextBuilder,
    ContextFormatOptions,
    LiteralContextSegment,
    from_record,
)
from weft.engine.events import ContextAssembled
from weft.errors import LinkError, RetrievalError, UsageError
from weft.packages.emit import assemblers
from weft.ports.retrieval import Collection, RetrievalResult, VectorSearchAdapter
from weft.runtime.flow import retrieval
from weft.testing import InMemoryVectorAdapter, ScriptedModel


class Library(Collection):
    """Passages for tests."""


class Author(BaseModel):
    name: str
    born: date


class Doc(BaseModel):
    summary: str = ""
    query: str = "bees"
    year: int = 2020
    author: Author | None = None
    facts: dict[str, int] = {}


VARIABLES = {
    "summary": derived("str", ""),
    "query": derived("str", "bees"),
    "year": derived("int", 2020),
    "author": derived("dict[str, str] | None"),
    "facts": derived("dict[str, int]", {}),
    "tier": {"type": "str", "source": {"type": "static", "value": "gold"}},
    "hidden": {"type": "str", "source": {"type": "static", "value": "x"}, "readers": ["Other"]},
}

SEED = [
    {"kind": "state", "path": "summary"},
    {"kind": "retrieval", "collection": "Library", "query_path": "query"},
    {"kind": "literal", "text": "Always cite sources."},
]


class Analyse(AgentStep[Doc]):
    def system_prompt(self) -> str:
        return "You analyse."

    def user_prompt(self, state: Doc) -> str:
        return "Analyse it."

    def apply(self, state, response, assembly):
        passages = [result.content for result in assembly.retrieval_results]
        return {"summary": f"{response.text} {passages} {assembly.is_empty}"}


def library(*passages) -> InMemoryVectorAdapter:
    made = InMemoryVectorAdapter()
    made.seed(*(passages or (("First.", 0.9), ("Second.", 0.8), ("Third.", 0.1))))
    return made


class Play(FlowPlay):
    """A flow with one step that is shown something."""

    def __init__(self, adapter=None, replies=("Done.",), **rest):
        self.adapter = library() if adapter is None else adapter
        super().__init__(
            agents=["Writer", "Other"],
            model=ScriptedModel(list(replies)),
            collections={Library: self.adapter},
            **rest,
        )

    def shown(self, sources=(), *, work=None, state=Doc, values=None, step_rest=None, **context):
        work = work or self.agent("Writer", Analyse)
        context = {"sources": list(sources), **context}
        node = step("analyse", work, context=context, **(step_rest or {}))
        spec = self.spec(node, state=state, variables=VARIABLES)
        return self.run(spec, **(values or {}))

    @property
    def sent(self):
        return [message["content"] for message in self.model.requests[0].messages]

    @property
    def context(self):
        return self.fetched()[0]["context"]


def assembler(play, kind, **options):
    name, made = play.objects.refer(kind)
    return {"assembler": name, "options": {**made, **options}}


# -- declared sources


def test_the_context_is_one_message_before_the_prompt():
    play = Play()
    ended = play.shown(SEED, values={"summary": "Bees dance."})
    assert play.sent == [
        "You analyse.",
        "Context:\nBees dance.\n\nFirst.\n---\nSecond.\n\nAlways cite sources.",
        "Analyse it.",
    ]
    assert [message["role"] for message in play.model.requests[0].messages] == [
        "system",
        "user",
        "user",
    ]
    assert ended.variables["summary"] == "Done. ['First.', 'Second.'] False"


def test_recorded_context_gives_the_same_prompt():
    play = Play()
    play.shown(SEED, values={"summary": "Bees dance."})
    record = play.context
    assert [segment["kind"] for segment in record["segments"]] == ["state", "retrieval", "literal"]
    assert record["segments"][1]["hits"][0] == {
        "content": "First.", "score": 0.9, "source_id": None, "metadata": None,
    }  # fmt: skip
    assert play.sent[1] == f"Context:\n{from_record(record).to_prompt_string()}"
    (manifest,) = [event.data for event in play.events if isinstance(event.data, ContextAssembled)]
    kinds = [segment["kind"] for segment in manifest.manifest["segments"]]
    assert {"state", "retrieval", "literal"} <= set(kinds)


def test_an_empty_context_adds_no_message():
    play = Play(library(("Not relevant.", 0.1)))
    play.shown([{"kind": "state", "path": "summary"}, SEED[1]])
    assert play.sent == ["You analyse.", "Analyse it."]


def test_an_agent_without_a_class_is_shown_the_same_message():
    play = Play()
    work = {"kind": "agent", "agent": "Writer", "prompt": "Write it.", "output": "summary"}
    ended = play.shown(SEED, work=work, state=None)
    assert play.sent[-2:] == [
        "Context:\nFirst.\n---\nSecond.\n\nAlways cite sources.",
        "Write it.",
    ]
    assert ended.variables["summary"] == "Done."


def test_a_function_has_what_it_is_shown_in_its_context():
    play = Play()

    def count(state, context: StepContext):
        return {"year": len(context.assembly.retrieval_results)}

    ended = play.shown(SEED, work=play.function(count))
    assert ended.variables["year"] == 2
    assert play.fetched()[0]["messages"] is None


def test_a_search_is_asked_for_what_is_declared():
    play = Play()
    source = {
        "kind": "retrieval", "collection": "Library", "query": "how bees dance", "top_k": 3,
        "min_relevance": 0.5,
        "filters": [{"key": "year", "path": "year"}, {"key": "kind", "value": ["paper"]}],
    }  # fmt: skip
    play.shown([source])
    (search,) = play.adapter.searches
    assert (search.query, search.top_k, search.min_relevance) == ("how bees dance", 3, 0.5)
    assert search.filters == {"year": 2020, "kind": ["paper"]}


def test_parts_of_the_state_are_shown_as_their_class_has_them():
    play = Play()
    values = {"author": {"name": "Ada", "born": "1815-12-10"}, "facts": {"born": 1815}}
    sources = ["author.born", "author", "facts.born"]
    play.shown([{"kind": "state", "path": source} for source in sources], values=values)
    assert play.context["text"] == ('1815-12-10\n\n{"name": "Ada", "born": "1815-12-10"}\n\n1815')


def test_variables_are_shown_that_the_agent_may_read():
    play = Play()
    play.shown([{"kind": "variable", "name": "tier"}])
    assert play.context["segments"][0]["value"] == "gold"
    play = Play()
    ended = play.shown([{"kind": "variable", "name": "hidden"}])
    assert ended.outcome == "failed"
    assert play.faults() == ["analyse may not be shown hidden"]


def test_a_format_says_how_the_pieces_become_one_text():
    play = Play()
    given = {"headers": True, "separator": " / ", "hit_separator": " + ", "template": "<{context}>"}
    play.shown(SEED, format=given, values={"summary": "S"})
    assert play.sent[1] == (
        "Context:\n<[summary]\nS / [Library]\nFirst. + Second. / Always cite sources.>"
    )


def test_parts_over_the_budget_are_left_out_and_shown():
    play = Play(library(("x" * 40, 0.9), ("y" * 40, 0.8)))
    ended = play.shown([SEED[1]], format={"max_tokens": 12})
    assert play.sent[1] == f"Context:\n{'x' * 40}"
    assert play.context["left_out"][0]["names"] == ["passage 2"]
    assert "yyy" not in ended.variables["summary"]


# -- searches


def test_search_results_are_cached_in_a_run():
    play = Play(replies=["One.", "Two."])
    context = {"sources": [SEED[1]]}
    steps = [step(name, play.agent("Writer", Analyse), context=context) for name in ("a", "b")]
    spec = play.spec(*steps, state=Doc, variables=VARIABLES)
    play.run(spec)
    assert len(play.adapter.searches) == 1
    assert [entry["context"]["text"] for entry in play.fetched()] == ["First.\n---\nSecond."] * 2


async def test_another_question_or_another_run_searches_anew():
    play = Play(replies=["One.", "Two.", "Three."])
    work = play.agent("Writer", Analyse)
    spec = play.spec(
        step("analyse", work, context={"sources": [SEED[1]]}), state=Doc, variables=VARIABLES
    )
    async with play.host(spec) as host:
        for values in ({}, {}, {"query": "ants"}):
            run = await host.start("F", scope=SCOPE, values=values)
            await host.settled(run, scope=SCOPE)
    outcome = [search.query for search in play.adapter.searches]
    assert outcome == ["bees", "bees", "ants"]


def test_only_so_many_searches_are_remembered():
    memory = retrieval.SearchMemory(runs=2, searches=2)
    for question in ("x", "y", "z"):
        memory.put("app", "a", question, ())
    assert [memory.get("app", "a", name) for name in ("x", "y", "z")] == [None, (), ()]
    memory.put("app", "b", "x", ())
    memory.put("app", "a", "x", ())
    memory.put("app", "c", "x", ())
    assert [memory.get("app", name, "x") for name in ("a", "b", "c")] == [(), None, ()]
    memory.forget("app", "a")
    assert memory.get("app", "a", "x") is None
    assert memory.get("other", "c", "x") is None


class Broken:
    def __init__(self, error=None, found=None, seconds=0.0):
        self.error, self.found, self.seconds = error, found, seconds

    async def search(self, query, *, top_k=5, min_relevance=0.7, filters=None):
        await asyncio.sleep(self.seconds)
        if self.error:
            raise self.error
        return self.found


@pytest.mark.parametrize(
    ("adapter", "told"),
    [
        (Broken(ConnectionError("refused")), "ConnectionError: refused"),
        (Broken(RetrievalError("it is down", hint="start it")), "it is down (start it)"),
        (Broken(RetrievalError("it is down")), "it is down"),
        (
            Broken(asyncio.CancelledError()),
            "the code raised CancelledError itself",
        ),
        (Broken(GeneratorExit()), "the code raised GeneratorExit itself"),
        (
            Broken(SystemExit(3)),
            "the code called sys.exit(); a run cannot end the process",
        ),
        (Broken(found=None), "TypeError: its adapter returned NoneType, not a RetrievalResult"),
        (Broken(found=["text"]), "TypeError: its adapter returned str, not a RetrievalResult"),
        (
            Broken(found=[RetrievalResult(3, 0.9)]),
            "TypeError: its adapter returned a passage without a text or a score",
        ),
    ],
)
def test_an_adapter_that_fails_fails_the_attempt(adapter, told):
    play = Play(adapter)
    ended = play.shown(SEED)
    assert ended.outcome == "failed"
    assert play.faults() == [f"the collection Library could not be searched: {told}"]
    assert not play.model.requests


def test_an_adapter_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(retrieval, "SEARCH_SECONDS", 0.05)
    play = Play(Broken(seconds=30))
    play.shown(SEED)
    assert play.faults() == [
        "the collection Library could not be searched: it took longer than 0.05 seconds"
    ]


def test_a_search_that_fails_is_made_again_with_the_next_attempt():
    class Once(Broken):
        async def search(self, query, **rest):
            if self.error:
                error, self.error = self.error, None
                raise error
            return [RetrievalResult("Found.", 0.9)]

    play = Play(Once(ConnectionError("refused")))
    work = play.agent("Writer", Analyse)
    retry = {"attempts": 2, "delay_seconds": 0.01}
    spec = play.spec(
        step("analyse", work, context={"sources": [SEED[1]]}, retry=retry),
        state=Doc,
        variables=VARIABLES,
    )

    ended = play.run(spec)
    assert ended.outcome == "completed"
    assert play.sent[1] == "Context:\nFound."


@pytest.mark.parametrize("query", ["", "  "])
def test_a_query_without_words_fails_the_attempt(query):
    play = Play()
    play.shown(SEED, values={"query": query})
    assert play.faults() == ["the query for the collection Library is empty or not text"]


def test_a_filter_on_what_no_passage_has_fails_the_attempt():
    play = Play()
    source = {**SEED[1], "filters": [{"key": "no_such_key", "value": 1}]}
    play.shown([source])
    (fault,) = play.faults()
    assert fault.startswith("the collection Library could not be searched: no passage")
    assert '"no_such_key"' in fault


def test_a_part_of_the_state_that_is_not_there_fails_the_attempt():
    play = Play()
    play.shown([{"kind": "state", "path": "facts.none"}])
    assert play.faults() == ["the state has no facts.none: there is no none in it"]


def test_a_collection_that_is_not_registered_is_refused_before_anything_is_written():
    async def whole():
        play = Play()
        node = step("a", play.agent("Writer", Analyse), context={"sources": [other]})
        async with play.host(play.spec(node, state=Doc, variables=VARIABLES)) as host:
            with pytest.raises(UsageError, match="the collection Other, which does not exist"):
                await host.start("F", scope=SCOPE)
            return await host.runs(scope=SCOPE)

    other = {**SEED[1], "collection": "Other"}
    assert asyncio.run(whole()) == []


def test_a_collection_that_is_gone_later_fails_the_attempt():
    play = Play(replies=["One."])

    def drop(state):
        play.registry._adapters.clear()

    work = play.agent("Writer", Analyse)
    spec = play.spec(
        step("drop", play.function(drop)),
        step("analyse", work, context={"sources": [SEED[1]]}),
        state=Doc,
        variables=VARIABLES,
    )
    play.run(spec)
    assert play.faults() == ["there is no collection Library here"]


# -- assemblers


def test_an_assembler_takes_the_place_of_the_sources():
    class Own:
        def __init__(self, word: str = "Hello"):
            self.word = word

        async def assemble(self, state: Doc, context: StepContext) -> AssembledContext:
            assert isinstance(self, ContextAssembler)
            text = f"{self.word} {state.query} {context.step} {context.variables['tier']}"
            return AssembledContextBuilder().add_literal_context(text).build()

    play = Play()
    play.shown(**assembler(play, Own, word="Hi"))
    assert play.sent[1] == "Context:\nHi bees analyse gold"
    assert not play.adapter.searches
    play = Play()
    play.shown(**assembler(play, Own()))
    assert play.sent[1] == "Context:\nHello bees analyse gold"


def test_an_assembler_gets_the_adapters_it_asks_for():
    class Own:
        def __init__(self, library: VectorSearchAdapter[Library]):
            self.library = library

        async def assemble(self, state: Doc, context: StepContext) -> AssembledContext:
            found = await self.library.search(state.query)
            again = await self.library.search(state.query)
            return AssembledContextBuilder().add_retrieval_context(Library, found + again).build()

    play = Play()
    play.shown(**assembler(play, Own))
    assert play.context["segments"][0]["text"] == "First.\n---\nSecond.\n---\nFirst.\n---\nSecond."
    assert len(play.adapter.searches) == 1
    play = Play()
    play.registry._adapters.clear()
    with pytest.raises(UsageError, match="searches the collection Library"):
        play.shown(**assembler(play, Own))


def test_the_format_of_an_assembler_wins_over_that_of_the_step():
    class Own:
        async def assemble(self, state, context):
            build = AssembledContextBuilder().add_literal_context("a").add_literal_context("b")
            return build.build(ContextFormatOptions(separator="+"))

    play = Play()
    play.shown(**assembler(play, Own), format={"separator": "-"})
    assert play.sent[1] == "Context:\na+b"
    assert from_record(play.context).format == ContextFormatOptions(separator="+")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "Own.assemble returned NoneType; return an AssembledContext"),
        ("text", "Own.assemble returned str; return an AssembledContext"),
        (
            AssembledContext((3,)),
            "Own.assemble returned int as a segment; use a segment class of weft.flow",
        ),
        (LookupError("no"), "Own.assemble failed: LookupError: no"),
        (AssembledContext((LiteralContextSegment(3),)), None),
    ],
)
def test_an_assembler_that_returns_nonsense_or_raises_fails_the_attempt(given, told):
    class Own:
        async def assemble(self, state, context):
            if isinstance(given, Exception):
                raise given
            return given

    play = Play()
    ended = play.shown(**assembler(play, Own))
    assert ended.outcome == "failed"
    (fault,) = play.faults()
    assert told is None or fault == told
    assert not play.model.requests


def test_an_assembler_that_hangs_is_given_up_with_its_step():
    class Own:
        async def assemble(self, state, context):
            await asyncio.sleep(30)

    play = Play()
    own = assembler(play, Own)
    ended = play.shown(**own, step_rest={"timeout_seconds": 0.1})
    assert ended.outcome == "failed"
    assert not play.model.requests


def test_class_without_assemble_is_refused_before_a_run():
    class Nothing: ...

    class Needs:
        def __init__(self, other: "NoSuchClass"):  # noqa: F821
            self.other = other

    play = Play()
    with pytest.raises(LinkError, match="assembles no context"):
        play.shown(**assembler(play, Nothing))
    with pytest.raises(LinkError, match="cannot be created"):
        play.shown(**assembler(play, Needs))


def test_a_board_is_read_only_while_a_context_is_assembled():
    play = Play()

    def look(state, context):
        context.board("Sales")

    play.shown(work=play.function(look))
    assert "is read only while a context is assembled" in play.failures()[0].error


# -- the same as code


ALL_SOURCES = [
    {"kind": "state", "path": "summary"},
    {"kind": "state", "path": "author"},
    {"kind": "state", "path": "author.born"},
    {"kind": "state", "path": "facts.born"},
    {
        "kind": "retrieval", "collection": "Library", "query_path": "query", "top_k": 1,
        "filters": [{"key": "year", "path": "year"}, {"key": "kind", "value": "paper"}],
    },
    {"kind": "retrieval", "collection": "Library", "query": 'say "bees"', "min_relevance": 0.5},
    {"kind": "variable", "name": "tier"},
    {"kind": "board", "board": "Sales", "filters": {"types": ["Lead"]}, "limit": 3},
    {"kind": "literal", "text": 'Always cite "sources".\nYes.'},
]  # fmt: skip


@artifact
class Lead(BaseModel):
    name: str


async def publish_leads(path) -> SqliteStore:
    """Publish what everybody sees and what others see, and return the journal it is in."""
    async with Board(name="Sales", journal=path, scope=SCOPE) as board:
        board.types(Lead)
        for name in ("Ada", "Bob", "Cy", "Dot"):
            await board.publish(Lead(name=name))
        await board.publish(Lead(name="Eve"), visibility={"kind": "private", "agents": ["Other"]})
    return await SqliteStore.open(path)


def test_artifacts_of_a_board_are_shown_as_far_as_the_agent_may_see_them(tmp_path):
    async def whole():
        play.journal = await publish_leads(tmp_path / "journal.db")
        source = {"kind": "board", "board": "Sales", "limit": 2}
        node = step("analyse", play.agent("Writer", Analyse), context={"sources": [source]})
        return await play.ended(play.spec(node, state=Doc, variables=VARIABLES))

    play = Play()
    asyncio.run(whole())
    (segment,) = play.context["segments"]
    assert [artifact["payload"]["name"] for artifact in segment["artifacts"]] == ["Dot", "Cy"]
    assert segment["text"].startswith('{"type": "Lead", "payload": {"name": "Dot"}')


@pytest.mark.parametrize("kind", [Doc, None])
@pytest.mark.parametrize("format_", [{}, {"headers": True, "template": "<{context}>"}])
def test_the_emitted_class_shows_the_same_bytes(kind, format_, tmp_path):
    meta = {"year": 2020, "kind": "paper"}
    found = (RetrievalResult("One.", 0.9, "a", meta), RetrievalResult("Two.", 0.6, "b", meta))
    declared, coded = Play(library(*found)), Play(library(*found))
    values = {
        "summary": "S", "author": {"name": "Ada", "born": "1815-12-10"}, "facts": {"born": 1815},
    }  # fmt: skip

    async def whole(play, context):
        node = step("analyse it", play.agent("Writer", Analyse), context=context)
        spec = play.spec(node, state=kind, variables=VARIABLES)
        await play.ended(spec, **values)
        return spec

    async def both():
        declared.journal = await publish_leads(tmp_path / "journal.db")
        spec = await whole(declared, {"sources": ALL_SOURCES, "format": format_})
        module = ModuleType("emitted")
        exec(assemblers(spec), module.__dict__)
        coded.journal = await SqliteStore.open(tmp_path / "journal.db")
        coded.run_id = "r2"
        await whole(coded, assembler(coded, module.AnalyseItContextAssembler))

    asyncio.run(both())
    assert coded.adapter.searches == declared.adapter.searches
    assert coded.context == declared.context
    assert coded.sent == declared.sent
    assert "Dot" in coded.sent[1]
