"""Streams mean the same however the network cuts them."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_play import ask
from weft.adapters.models.completion import StreamReader
from weft.engine.events import ToolRequest, Usage
from weft.errors import ModelError


def line(**chunk: object) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


def text(content: str) -> str:
    return line(choices=[{"delta": {"content": content}}])


WHOLE = "".join(
    [
        ": keep alive\n\n",
        text("Gr\u00fc\u00df "),
        text("Gott \U0001f600"),
        line(
            choices=[
                {"delta": {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "u"}}]}}
            ]
        ),
        line(
            choices=[
                {
                    "delta": {
                        "tool_calls": [
                            {"index": 0, "id": "a", "function": {"name": "t", "arguments": '{"x"'}},
                            {"index": 0, "function": {"arguments": ": 1}"}},
                        ]
                    }
                }
            ]
        ),
        line(choices=[{"delta": {}, "finish_reason": "tool_calls"}], model="m"),
        line(choices=[], usage={"prompt_tokens": 5, "completion_tokens": 6}),
        "data: [DONE]\n\n",
    ]
).encode()


@given(st.lists(st.integers(0, len(WHOLE)), max_size=12))
def test_cuts_do_not_matter(cuts: list[int]):
    pieces: list[str] = []
    reader = StreamReader(ask(), pieces.append)
    places = [0, *sorted(cuts), len(WHOLE)]
    for start, end in itertools.pairwise(places):
        reader.feed(WHOLE[start:end])
    reply = reader.reply()
    assert reader.done
    # The pieces of calls and the end have no words, and tell that the model is at work.
    assert pieces == ["Gr\u00fc\u00df ", "Gott \U0001f600", "", "", ""]
    assert reply.text == "Gr\u00fc\u00df Gott \U0001f600"
    assert reply.tool_requests == (ToolRequest("a", "t", {"x": 1}), ToolRequest("b", "u", {}))
    assert reply.usage == Usage(5, 6)
    assert reply.model == "m"


@given(st.integers(0, WHOLE.index(b"finish_reason") - 1))
def test_a_stream_that_ends_early_was_cut(end: int):
    reader = StreamReader(ask(), [].append)
    reader.feed(WHOLE[:end])
    with pytest.raises(ModelError, match="ended early") as caught:
        reader.reply()
    assert caught.value.retryable


def test_streamed_refusal_is_the_reply():
    reader = StreamReader(ask(), [].append)
    reader.feed(line(choices=[{"delta": {"refusal": "No."}, "finish_reason": "stop"}]).encode())
    assert reader.reply().text == "No."


def test_calls_without_index_follow_one_another():
    def piece(**call: object) -> bytes:
        return line(choices=[{"delta": {"tool_calls": [call]}}]).encode()

    reader = StreamReader(ask(), [].append)
    reader.feed(piece(id="a", function={"name": "t", "arguments": "{"}))
    reader.feed(piece(function={"arguments": "}"}))
    reader.feed(piece(id="b", function={"name": "u", "arguments": "{}"}))
    reader.feed(b"data: [DONE]\n")
    assert [(request.id, request.tool) for request in reader.reply().tool_requests] == [
        ("a", "t"),
        ("b", "u"),
    ]
