"""Mistakes in flows that only show when they are linked or run: one sentence names each."""

import pytest
from pydantic import BaseModel

import weft
from weft.errors import LinkError, UsageError
from weft.flow import AgentStep, Workflow
from weft.retrieval import RetrievalResult


class Draft(BaseModel):
    topic: str = "bees"


class AsyncPrompt(AgentStep[Draft]):
    def system_prompt(self):
        return "You write."

    async def user_prompt(self, state):
        return state.topic

    def apply(self, state, response, assembly):
        return None


class PlainAdapter:
    def search(self, query, *, top_k, min_relevance, filters):
        return [RetrievalResult("text", 1.0)]


def searching():
    def configure(options):
        options.with_context(lambda c: c.from_retrieval("Library", lambda r: r.query("bees")))

    return Workflow.create("Search", Draft).start_with(lambda state: None, configure, name="look")


def test_async_prompt_is_named():
    flow = Workflow.create("Write", Draft).start_with(AsyncPrompt)
    with pytest.raises(LinkError, match="has an async user_prompt"):
        weft.run(flow, Draft(), model="sample")


def test_adapter_class_is_refused():
    with pytest.raises(UsageError, match="the adapter PlainAdapter is a class") as caught:
        weft.run(searching(), Draft(), collections={"Library": PlainAdapter})
    assert caught.value.hint == "give an object: PlainAdapter(...)"


def test_plain_adapter_is_named():
    result = weft.run(searching(), Draft(), collections={"Library": PlainAdapter()})
    assert "PlainAdapter.search is not async; write `async def search`" in result.reason


def test_oversized_state_says_which_field_and_the_limit():
    flow = Workflow.create("Long", Draft).start_with(lambda state: None, name="look")
    with pytest.raises(UsageError, match="topic is too large: it has 5,000,013 bytes"):
        weft.run(flow, Draft(topic="x" * 5_000_000))


def test_mapping_is_taken_for_a_state():
    flow = Workflow.create("Short", Draft).start_with(lambda state: {"topic": "b"}, name="look")
    assert weft.run(flow, {"topic": "a"}).output == Draft(topic="b")
    assert weft.run(flow.build(), Draft()).output == Draft(topic="b")
