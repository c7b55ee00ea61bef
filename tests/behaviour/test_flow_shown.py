"""What steps of built flows are shown: sources, searches, formats, conversations, streams."""

import asyncio

import pytest
from pydantic import BaseModel

from support.flow_options import waits
from weft.app.folders import LOCAL
from weft.board import Board, FilterConfig
from weft.engine.events import ContextAssembled, ContextFetched
from weft.flow import (
    AgentStep,
    AssembledContext,
    AssembledContextBuilder,
    ContextFormatOptions,
    Response,
    Workflow,
    agent,
    open_flow,
    run_flow,
)
from weft.ports.live import TextDelta
from weft.ports.model import ModelRequest
from weft.retrieval import Collection, RetrievalResult
from weft.runtime.signals import Answer
from weft.spec.type_parser import parse_type
from weft.spec.variables import StaticSource, Variable
from weft.testing import FunctionModel, InMemoryVectorAdapter, ScriptedModel


class Library(Collection):
    """Passages for tests."""


class Author(BaseModel):
    name: str = ""


class Doc(BaseModel):
    title: str = "Bees"
    author: Author = Author()
    query: str = "how bees dance"
    year: int = 2020
    text: str = ""
    number: int = 0


class Analyse(AgentStep[Doc]):
    def system_prompt(self) -> str:
        return "You analyse."

    def user_prompt(self, state: Doc) -> str:
        return f"Analyse {state.title}."

    def apply(self, state: Doc, response: Response, assembly: AssembledContext):
        return {"text": response.text, "number": len(assembly.retrieval_results)}


def library(*passages) -> InMemoryVectorAdapter[Library]:
    made = InMemoryVectorAdapter[Library]()
    made.seed(*passages or (("First.", 0.9), ("Second.", 0.8), ("Third.", 0.1)))
    return made


def built(context=None, *, step=Analyse) -> Workflow[Doc]:
    flow = Workflow.create("F", Doc)
    if context is None:
        return flow.start_with(step)
    return flow.start_with(step, lambda o: o.with_context(context))


def sent(context=None, adapter=None, **values):
    """Run a flow of one step; return what its model was sent, and the state at the end."""

    async def whole():
        model = ScriptedModel(["Done."])
        found = {Library: adapter or library()}
        result = await run_flow(built(context), Doc(**values), model=model, collections=found)
        assert result.outcome == "completed", result.reason
        return [
            (message["role"], message["content"]) for message in model.requests[0].messages
        ], result

    return waits(whole)


# -- sources


def test_sources_are_shown_in_their_order_between_the_prompts():
    messages, result = sent(
        lambda c: (
            c.from_state(lambda s: s.title)
            .from_retrieval(Library, lambda r: r.query(lambda s: s.query))
            .from_literal("Always cite sources.")
        )
    )
    assert messages == [
        ("system", "You analyse."),
        ("user", "Context:\nBees\n\nFirst.\n---\nSecond.\n\nAlways cite sources."),
        ("user", "Analyse Bees."),
    ]
    assert (result.output.text, result.output.number) == ("Done.", 2)


def test_without_a_context_nothing_is_shown():
    messages, _ = sent()
    assert messages == [("system", "You analyse."), ("user", "Analyse Bees.")]


def test_a_search_gets_query_top_k_min_relevance_and_filters_of_both_kinds():
    adapter = library(RetrievalResult("First.", 0.9, metadata={"year": 2020, "kind": "paper"}))
    flow = built(
        lambda c: c.from_retrieval(
            Library,
            lambda r: (
                r.query(lambda s: s.query)
                .top_k(3)
                .min_relevance(0.5)
                .filter("year", lambda s: s.year)
                .filter("kind", "paper")
            ),
        )
    )
    (source,) = flow.build().flow.steps[0].context.sources
    assert (source.collection, source.query, source.query_path) == ("Library", None, "query")
    assert [(filter_.key, filter_.value, filter_.path) for filter_ in source.filters] == [
        ("year", None, "year"),
        ("kind", "paper", None),
    ]

    async def whole():
        found = {Library: adapter}
        return await run_flow(flow, Doc(year=2020), model=ScriptedModel(["x"]), collections=found)

    assert waits(whole).output.number == 1
    (search,) = adapter.searches
    assert (search.query, search.top_k, search.min_relevance) == ("how bees dance", 3, 0.5)
    assert search.filters == {"year": 2020, "kind": "paper"}


def test_a_query_may_be_a_text():
    adapter = library()
    sent(lambda c: c.from_retrieval("Library", lambda r: r.query("ants")), adapter)
    assert [search.query for search in adapter.searches] == ["ants"]


def test_top_k_and_min_relevance_choose_the_passages():
    def shown(top_k, min_relevance):
        messages, _ = sent(
            lambda c: c.from_retrieval(
                Library, lambda r: r.query("x").top_k(top_k).min_relevance(min_relevance)
            )
        )
        return messages[1][1].removeprefix("Context:\n").split("\n---\n")

    assert shown(1, 0.0) == ["First."]
    assert shown(5, 0.0) == ["First.", "Second.", "Third."]
    assert shown(5, 0.85) == ["First."]


def test_another_adapter_is_given_to_the_same_flow():
    flow = built(lambda c: c.from_retrieval(Library, lambda r: r.query("x")))

    async def whole():
        found = []
        for adapter in (library(("One.", 0.9)), library(("Two.", 0.9), ("Three.", 0.8))):
            model = ScriptedModel(["Done."])
            await run_flow(flow, Doc(), model=model, collections={Library: adapter})
            found.append(model.requests[0].messages[1]["content"])
        return found

    assert waits(whole) == ["Context:\nOne.", "Context:\nTwo.\n---\nThree."]


def test_variable_outside_the_state_is_shown():
    flow = built(lambda c: c.from_variable("tier")).variables(
        {"tier": Variable(type=parse_type("str"), source=StaticSource(value="gold"))}
    )
    (source,) = flow.build().flow.steps[0].context.sources
    assert source.name == "tier"

    async def whole():
        model = ScriptedModel(["Done."])
        await run_flow(flow, Doc(), model=model)
        return model.requests[0].messages[1]["content"]

    assert waits(whole) == "Context:\ngold"


def test_a_part_of_the_state_is_shown_by_its_path():
    flow = built(lambda c: c.from_state(lambda s: s.author.name))
    (source,) = flow.build().flow.steps[0].context.sources
    assert source.path == "author.name"
    messages, _ = sent(lambda c: c.from_state(lambda s: s.author.name), author=Author(name="Ada"))
    assert messages[1] == ("user", "Context:\nAda")


class Terse(Analyse):
    """A step of an agent that is made with an option."""

    def __init__(self, words: int = 5) -> None:
        self.words = words

    def system_prompt(self) -> str:
        return f"You need {self.words} words."


def test_the_class_of_an_agents_step_is_made_with_its_options():
    spec = built(step=Terse(words=3)).build()
    work = spec.flow.steps[0].work
    assert (work.agent, work.options) == ("Terse", {"words": 3})
    assert work.step.endswith(":Terse")

    async def whole():
        model = ScriptedModel({"Terse": ["Done."]})
        await run_flow(spec, Doc(), model=model)  # the spec alone: the class is imported and made
        return model.requests[0].messages[0]["content"]

    assert waits(whole) == "You need 3 words."


def test_artifacts_of_a_board_are_shown_newest_first_within_filters_and_limit(tmp_path):
    class Note(BaseModel):
        text: str

    class Other(BaseModel):
        text: str

    async def whole():
        file = tmp_path / "journal.db"
        async with Board(name="Desk", journal=file) as board:
            board.types(Note, Other)
            for item in (Note(text="a"), Note(text="b"), Other(text="c"), Note(text="d")):
                await board.publish(item)
            await board.run_until_idle()
        notes = FilterConfig(types={"Note"})
        flow = built(lambda c: c.from_board("Desk", filters=notes, limit=2))
        model = ScriptedModel(["Done."])
        result = await run_flow(flow, Doc(), model=model, journal=file)
        return result, model.requests[0].messages[1]["content"]

    result, text = waits(whole)
    assert result.outcome == "completed"
    assert [letter for letter in "abcd" if f'{{"text": "{letter}"}}' in text] == ["b", "d"]
    assert text.index('"d"') < text.index('"b"')


# -- how it becomes text


def test_headers_separator_hit_separator_and_template_make_the_text():
    options = ContextFormatOptions(
        headers=True, separator=" / ", hit_separator=" + ", template="<{context}>"
    )
    messages, _ = sent(
        lambda c: (
            c.from_state(lambda s: s.title)
            .from_retrieval(Library, lambda r: r.query("x"))
            .from_literal("Cite.")
            .formatted(options)
        )
    )
    assert messages[1][1] == "Context:\n<[title]\nBees / [Library]\nFirst. + Second. / Cite.>"


def test_parts_over_max_tokens_are_left_out_and_recorded():
    async def whole():
        flow = built(
            lambda c: c.from_retrieval(Library, lambda r: r.query("x")).formatted(
                ContextFormatOptions(max_tokens=12)
            )
        )
        found = {Library: library(("x" * 40, 0.9), RetrievalResult("y" * 40, 0.8, "b.pdf"))}
        model = ScriptedModel(["Done."])
        async with open_flow(flow, model=model, collections=found) as host:
            run = await host.start("F", scope=LOCAL)
            await host.settled(run, scope=LOCAL)
            events = [event.data async for event in host.events(run, scope=LOCAL)]
        return model.requests[0].messages[1]["content"], events

    text, events = waits(whole)
    assert text == f"Context:\n{'x' * 40}"
    (fetched,) = [event for event in events if isinstance(event, ContextFetched)]
    (left_out,) = fetched.step["context"]["left_out"]
    assert left_out["names"] == ["b.pdf"]
    (assembled,) = [event for event in events if isinstance(event, ContextAssembled)]
    assert left_out in assembled.manifest["left_out"]


def test_shown_passages_are_recorded_with_scores():
    async def whole():
        flow = built(lambda c: c.from_retrieval(Library, lambda r: r.query("x")))
        found = {Library: library(RetrievalResult("First.", 0.9, "a.pdf", {"page": 3}))}
        async with open_flow(flow, model=ScriptedModel(["x"]), collections=found) as host:
            run = await host.start("F", scope=LOCAL)
            await host.settled(run, scope=LOCAL)
            events = [event.data async for event in host.events(run, scope=LOCAL)]
        return next(event for event in events if isinstance(event, ContextFetched)).step

    recorded = waits(whole)
    (segment,) = recorded["context"]["segments"]
    assert segment["hits"] == [
        {"content": "First.", "score": 0.9, "source_id": "a.pdf", "metadata": {"page": 3}}
    ]
    assert recorded["context"]["text"] == "First."


class Both:
    """An assembler of one's own, made with options."""

    def __init__(self, times: int = 1) -> None:
        self.times = times

    async def assemble(self, state: Doc, context) -> AssembledContext:
        made = AssembledContextBuilder().add_state_context("title", state.title)
        return made.add_literal_context("!" * self.times).build()


def test_an_assembler_with_its_options_takes_the_place_of_sources():
    flow = built(lambda c: c.assembled_by(Both(times=3)))
    declared = flow.build().flow.steps[0].context
    assert declared.assembler.endswith(":Both")
    assert declared.options == {"times": 3}
    messages, _ = sent(lambda c: c.assembled_by(Both(times=3)))
    assert messages[1] == ("user", "Context:\nBees\n\n!!!")


# -- inside one run


def test_run_does_not_repeat_a_search():
    def ask(options):
        return options.with_context(
            lambda c: c.from_retrieval(Library, lambda r: r.query(lambda s: s.query))
        )

    async def whole():
        adapter = library()
        flow = built(lambda c: c.from_retrieval(Library, lambda r: r.query(lambda s: s.query)))
        flow.then(Analyse, ask, name="again")
        flow.then(lambda s: {"query": "ants"}, name="change").then(Analyse, ask, name="other")
        model = ScriptedModel(["a", "b", "c"])
        await run_flow(flow, Doc(), model=model, collections={Library: adapter})
        assert [request.messages[1]["content"] for request in model.requests] == [
            "Context:\nFirst.\n---\nSecond."
        ] * 3
        return [search.query for search in adapter.searches]

    assert waits(whole) == ["how bees dance", "ants"]


class Verdict(BaseModel):
    text: str
    number: int


class Judge(Analyse):
    output_type = Verdict

    def apply(self, state: Doc, response: Response, assembly: AssembledContext):
        return {"text": response.output.text, "number": response.output.number}


def test_words_are_streamed_beside_the_journal_and_the_typed_result_is_the_same():
    reply = '{"text": "one two three", "number": 4}'

    async def whole(*, follow):
        gate = asyncio.Event()

        async def answer(request: ModelRequest) -> str:
            if follow:
                await gate.wait()
            return reply

        deltas = []
        async with open_flow(built(step=Judge), model=FunctionModel(answer)) as host:
            run = await host.start("F", scope=LOCAL, streamed=follow)

            async def listen():
                events = host.events(run, scope=LOCAL, follow=True)
                deltas.extend([event async for event in events if isinstance(event, TextDelta)])

            if follow:
                listener = asyncio.create_task(listen())
                await asyncio.sleep(0.05)
                gate.set()
                await listener
            await host.settled(run, scope=LOCAL)
            state = await host.state(run, scope=LOCAL)
            kinds = [type(event.data).__name__ async for event in host.events(run, scope=LOCAL)]
        return deltas, (state.variables["text"], state.variables["number"]), kinds

    deltas, streamed, events = waits(lambda: whole(follow=True))
    none, plain, same_events = waits(lambda: whole(follow=False))
    assert "".join(delta.text for delta in deltas) == reply
    assert len(deltas) > 1
    assert [delta.offset for delta in deltas][:2] == [0, len(deltas[0].text)]
    assert none == []
    assert streamed == plain == ("one two three", 4)
    assert events == same_events


# -- conversations of agents


def remembering(flow, *, max_messages=None):
    """Let the same agent do three steps; the last two see what was said."""

    def history(options):
        return options.with_context(lambda c: c.from_history(max_messages=max_messages))

    return (
        flow.agent("Writer", prompt="You write.")
        .agent("Critic", prompt="You judge.")
        .start_with(agent("Writer", prompt="Begin.", output="text"), name="begin")
        .then(agent("Critic", prompt="Judge {text}", output="title"), name="judge")
        .then(agent("Writer", prompt="Go on.", output="text"), history, name="go_on")
        .await_approval("user:me")
        .then(agent("Writer", prompt="End.", output="text"), history, name="end")
    )


def said(request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] != "system"]


async def conversed(tmp_path, *, restart, **limits):
    """Play the flow; with a restart, another host goes on after the approval."""
    flow = remembering(Workflow.create("F", Doc), **limits)
    model = ScriptedModel({"Writer": ["W1", "W2", "W3"], "Critic": ["C1"]})
    file = tmp_path / f"{restart}.db"

    async def answered(host, run):
        (asked,) = await host.requests(scope=LOCAL, run=run)
        await host.deliver(run, Answer(asked.id, {"decision": "approve"}), scope=LOCAL)
        await host.settled(run, scope=LOCAL)
        return await host.state(run, scope=LOCAL)

    async with open_flow(flow, model=model, journal=file) as host:
        run = await host.start("F", scope=LOCAL)
        await host.settled(run, scope=LOCAL)
        if not restart:
            state = await answered(host, run)
    if restart:
        async with open_flow(flow, model=model, journal=file) as host:
            state = await answered(host, run)
    assert state.outcome == "completed", state.reason
    return [said(request) for request in model.requests]


def test_agent_sees_its_own_earlier_steps_only(tmp_path):
    found = waits(lambda: conversed(tmp_path, restart=False))
    assert found == [
        ["Begin."],
        ["Judge W1"],
        ["Begin.", "W1", "Go on."],
        ["Begin.", "W1", "Go on.", "W2", "End."],
    ]


def test_the_conversation_of_an_agent_is_cut_to_max_messages(tmp_path):
    found = waits(lambda: conversed(tmp_path, restart=False, max_messages=2))
    assert found[2:] == [["Begin.", "W1", "Go on."], ["Go on.", "W2", "End."]]


def test_the_conversation_of_an_agent_is_there_after_a_restart(tmp_path):
    found = waits(lambda: conversed(tmp_path, restart=True))
    assert found == waits(lambda: conversed(tmp_path, restart=False))


@pytest.mark.parametrize("begun", [True, False])
def test_messages_of_parallel_paths_are_in_path_order(begun):
    def asked(text, name):
        return lambda path: path.then(agent("Writer", prompt=text, output=name), name=name)

    async def whole():
        flow = Workflow.create("F", Doc).agent("Writer", prompt="You write.")
        if begun:
            flow = flow.start_with(agent("Writer", prompt="Begin.", output="text"), name="begin")
        else:
            flow = flow.start_with(lambda doc: None, name="begin")
        flow = (
            flow.fork(asked("Left.", "text"), asked("Right.", "title"))
            .join(lambda doc: None, name="join")
            .then(
                agent("Writer", prompt="End.", output="text"),
                lambda item: item.with_context(lambda c: c.from_history()),
                name="end",
            )
        )
        replies = {"Begin.": "B", "Left.": "L", "Right.": "R", "End.": "E"}
        model = FunctionModel(lambda request: replies[request.messages[-1]["content"]])
        ended = await run_flow(flow, Doc(), model=model)
        assert ended.outcome == "completed", ended.reason
        return said(model.requests[-1])

    before = ["Begin.", "B"] if begun else []
    assert waits(whole) == [*before, "Left.", "L", "Right.", "R", "End."]
