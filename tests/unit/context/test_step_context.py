"""Contexts of steps: segments, the texts made of them, and how a journal keeps them."""

import time
import timeit
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel, Field

from weft.context.slices import Envelope
from weft.context.step_context import (
    ArtifactsContextSegment,
    AssembledContext,
    AssembledContextBuilder,
    ContextFormatOptions,
    LiteralContextSegment,
    RetrievalContextSegment,
    StateContextSegment,
    VariableContextSegment,
    context_record,
    from_record,
    state_value,
)
from weft.errors import ToolError
from weft.ports.retrieval import Collection, RetrievalResult
from weft.runtime.variables.json_values import plain_json
from weft.spec.agents import estimate_tokens


class ResearchLibrary(Collection): ...


def hit(text: str, source: str | None = None) -> RetrievalResult:
    return RetrievalResult(text, 0.9, source, {"year": 2020})


def whole() -> AssembledContext:
    """Build the context of the seed: a value, passages, a text."""
    return (
        AssembledContextBuilder()
        .add_state_context("document_summary", "Bees dance.")
        .add_retrieval_context(ResearchLibrary, [hit("First."), hit("Second.")])
        .add_literal_context("Always cite sources.")
        .build()
    )


def test_by_default_blank_lines_part_the_pieces_and_dashes_the_passages():
    assert whole().to_prompt_string() == (
        "Bees dance.\n\nFirst.\n---\nSecond.\n\nAlways cite sources."
    )


def test_segments_are_in_the_order_they_were_added():
    assert whole().segments == (
        StateContextSegment("document_summary", "Bees dance."),
        RetrievalContextSegment("ResearchLibrary", (hit("First."), hit("Second."))),
        LiteralContextSegment("Always cite sources."),
    )
    assert whole().retrieval_results == (hit("First."), hit("Second."))


def test_a_collection_may_be_named():
    made = AssembledContextBuilder().add_retrieval_context("Library", []).build()
    assert made.segments == (RetrievalContextSegment("Library", ()),)


def test_nothing_is_shown_of_no_value_and_leaves_no_gap():
    made = (
        AssembledContextBuilder()
        .add_state_context("a", None)
        .add_variable_context("b", None)
        .add_retrieval_context("Library", [])
        .add_literal_context("Text.")
        .build()
    )
    assert made.to_prompt_string() == "Text."
    assert not made.is_empty


def test_a_context_without_text_is_empty():
    assert AssembledContext.empty().is_empty
    assert AssembledContext.empty().to_prompt_string() == ""
    said = AssembledContextBuilder().add_state_context("a", None).build()
    assert said.is_empty
    assert said.to_prompt_string(ContextFormatOptions(template="<{context}>", headers=True)) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (3, "3"),
        (True, "true"),
        ({"ä": [1, 2]}, '{"ä": [1, 2]}'),
        ((1, 2), "[1, 2]"),
        (datetime(2020, 1, 2, tzinfo=UTC), "2020-01-02T00:00:00Z"),
    ],
)
def test_values_are_formatted_like_variables_in_a_prompt(value, text):
    assert StateContextSegment("a", value).to_prompt_string() == text
    assert VariableContextSegment("a", value).to_prompt_string() == text


def test_objects_are_shown_by_the_names_of_their_fields():
    class Part(BaseModel):
        title: str = Field(alias="theTitle")

    segment = StateContextSegment("part", Part(theTitle="T"))
    assert segment.to_prompt_string() == '{"title": "T"}'


def test_artifacts_are_lines_of_json_with_the_shown_fields():
    artifact = Envelope(
        "a1", "Lead", {"name": "Ada"}, "scout", "c", None, (), datetime(2020, 1, 1, tzinfo=UTC)
    )
    built = AssembledContextBuilder().add_artifacts_context(
        "Sales", [artifact, {"type": "Lead", "payload": {"name": "Bob"}}]
    )
    text = built.build().to_prompt_string()
    assert text == (
        '{"type": "Lead", "payload": {"name": "Ada"}, "produced_by": "scout"}\n'
        '{"type": "Lead", "payload": {"name": "Bob"}}'
    )


def test_formats_set_headers_separators_and_the_text_around():
    options = ContextFormatOptions(
        headers=True, separator="\n==\n", hit_separator=" | ", template="<<{context}>>"
    )
    assert whole().to_prompt_string(options) == (
        "<<[document_summary]\nBees dance.\n==\n"
        "[ResearchLibrary]\nFirst. | Second.\n==\nAlways cite sources.>>"
    )


def test_a_template_may_contain_other_braces():
    options = ContextFormatOptions(template='{"context": "{context}"}')
    made = AssembledContextBuilder().add_literal_context("{x}").build()
    assert made.to_prompt_string(options) == '{"context": "{x}"}'


def test_a_context_has_a_format_of_its_own_unless_another_is_asked_for():
    made = AssembledContextBuilder().add_literal_context("a").add_literal_context("b")
    own = made.build(ContextFormatOptions(separator="+"))
    assert own.to_prompt_string() == "a+b"
    assert own.to_prompt_string(ContextFormatOptions(separator="-")) == "a-b"


def test_over_the_budget_passages_are_left_out_from_the_end_then_pieces():
    made = (
        AssembledContextBuilder()
        .add_state_context("summary", "s" * 40)
        .add_retrieval_context("Library", [hit("x" * 40, "one.md"), hit("y" * 40), hit("z" * 40)])
        .build(ContextFormatOptions(max_tokens=24))
    )
    context, left_out = made.fitted()
    assert [len(result.content) for result in context.retrieval_results] == [40]
    assert left_out == [
        {
            "kind": "retrieval",
            "origin": "Library",
            "names": ["passage 2", "passage 3"],
            "reason": "over the budget of 24 tokens",
        }
    ]
    assert made.to_prompt_string() == f"{'s' * 40}\n\n{'x' * 40}"
    assert made.to_prompt_string(ContextFormatOptions(max_tokens=12)) == "s" * 40
    assert made.to_prompt_string(ContextFormatOptions(max_tokens=1)) == ""
    _, gone = made.fitted(ContextFormatOptions(max_tokens=1))
    assert [(event["kind"], event.get("names")) for event in gone] == [
        ("state", None),
        ("retrieval", ["one.md", "passage 2", "passage 3"]),
    ]


def test_over_the_budget_artifacts_are_left_out_from_the_end():
    items = [{"id": "a1", "type": "T", "payload": "p" * 40}, {"type": "T", "payload": "q" * 40}]
    made = AssembledContextBuilder().add_artifacts_context("B", items).build()
    context, left_out = made.fitted(ContextFormatOptions(max_tokens=20))
    assert context.segments == (ArtifactsContextSegment("B", (items[0],)),)
    assert left_out[0]["names"] == ["artifact 2"]
    assert made.fitted(ContextFormatOptions(max_tokens=2))[1][0]["names"] == ["a1", "artifact 2"]


def test_a_part_over_budget_does_not_exclude_later_ones():
    found = [hit("h" * 400, "huge.md"), hit("small", "small.md"), hit("x" * 400)]
    items = [{"id": "a1", "type": "T", "payload": "p" * 400}, {"type": "T", "payload": "q"}]
    made = (
        AssembledContextBuilder()
        .add_retrieval_context("Library", found)
        .add_state_context("summary", "s" * 400)
        .add_artifacts_context("B", items)
        .add_literal_context("rule")
        .build(ContextFormatOptions(max_tokens=50))
    )
    context, left_out = made.fitted()
    assert [result.content for result in context.retrieval_results] == ["small"]
    assert made.to_prompt_string() == 'small\n\n{"type": "T", "payload": "q"}\n\nrule'
    assert [(event["kind"], event.get("names")) for event in left_out] == [
        ("retrieval", ["huge.md", "passage 3"]),
        ("state", None),
        ("board", ["a1"]),
    ]
    assert context.fitted() == (context, [])


def test_texts_that_are_left_out_are_listed_individually():
    made = AssembledContextBuilder().add_literal_context("a" * 9).add_literal_context("b" * 9)
    _, left_out = made.build().fitted(ContextFormatOptions(max_tokens=1))
    assert [event["kind"] for event in left_out] == ["literal", "literal"]


def test_recorded_context_is_restored_equal():
    made = (
        AssembledContextBuilder()
        .add_state_context("sizes", (1, 2))
        .add_variable_context("tier", "gold")
        .add_retrieval_context("Library", [hit("First.", "a.md"), RetrievalResult("x", 1, None)])
        .add_artifacts_context("Sales", [{"id": "a1", "type": "Lead", "payload": {}}])
        .add_literal_context("Text.")
        .build(ContextFormatOptions(separator="; "))
    )
    record = plain_json(context_record(made, [{"kind": "literal"}]))
    assert from_record(record) == made
    assert record["text"] == from_record(record).to_prompt_string()
    assert record["left_out"] == [{"kind": "literal"}]
    assert [segment["kind"] for segment in record["segments"]] == [
        "state", "variable", "retrieval", "board", "literal",
    ]  # fmt: skip
    assert from_record(None) == AssembledContext.empty()
    assert from_record(plain_json(context_record(whole()))) == whole()


def test_a_part_of_the_state_is_read_through_objects_and_mappings():
    class Author(BaseModel):
        name: str

    class State(BaseModel):
        author: Author | None = None
        facts: dict[str, int] = {}

    state = State(author=Author(name="Ada"), facts={"year": 1843})
    assert state_value(state, "author.name") == "Ada"
    assert state_value(state, "facts.year") == 1843
    assert state_value(State(), "author.name") is None
    for path in ("author.age", "facts.age", "other"):
        with pytest.raises(ToolError, match=f"the state has no {path}"):
            state_value(state, path)


def fitting_seconds(count):
    """Return how long it takes to leave most of so many passages out."""
    passages = tuple(hit("x" * 1_000) for _ in range(count))
    context = AssembledContext((RetrievalContextSegment("Library", passages),))
    options = ContextFormatOptions(max_tokens=1_000, headers=True)
    work = timeit.Timer(lambda: context.fitted(options), timer=time.process_time)
    return min(work.repeat(repeat=5, number=1))


def test_trimming_passages_takes_linear_time():
    assert fitting_seconds(4_000) < 8 * fitting_seconds(1_000) + 0.02


@pytest.mark.parametrize("tokens", [1, 3, 5, 8, 13, 40])
@pytest.mark.parametrize("template", [None, "<{context}>", "{context} and {context}", "fixed"])
@pytest.mark.parametrize("headers", [True, False])
def test_history_keeps_as_much_as_fits(tokens, template, headers):
    segments = (
        StateContextSegment("a", "abcdef"),
        StateContextSegment("none", None),
        RetrievalContextSegment("L", (hit(""), hit("12345"), hit("x" * 30), hit("1"))),
        LiteralContextSegment("end"),
    )
    options = ContextFormatOptions(template=template, headers=headers, max_tokens=tokens)
    unlimited = options.model_copy(update={"max_tokens": None})
    fitting = AssembledContext(segments).fitted(options)
    text = fitting.context.to_prompt_string(unlimited)
    assert estimate_tokens(text) <= tokens
    assert bool(fitting.left_out) == (fitting.context != AssembledContext(segments))
