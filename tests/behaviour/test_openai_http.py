"""The thin client against a real server on this machine, well-behaved and not."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from benchmarks.mock_server import FAULTS, Answer, Call, MockServer, error

from support.cases import read_cases
from support.model_play import LOOKUP, ask, called, run, said
from weft.adapters.models import openai_http
from weft.adapters.models.openai_http import MOST_TAILS, ChatModel, Connections, Endpoint
from weft.engine.events import NO_USAGE, ToolRequest, Usage
from weft.errors import ModelError, UsageError
from weft.ports.model import ModelReply, ModelRequest, OutputSchema, ToolSchema
from weft.spec.agents import ModelSettings

CASES = read_cases(__file__)

KEY = "sk-secret-123"


@asynccontextmanager
async def chat(
    *script: Answer, model: str = "mock", key: str | None = None
) -> AsyncIterator[tuple[ChatModel, MockServer]]:
    connections = Connections()
    async with MockServer(script) as server:
        try:
            yield ChatModel(Endpoint(server.base_url, key), model, connections), server
        finally:
            await connections.close()


def answer(
    *script: Answer,
    request: ModelRequest | None = None,
    model: str = "mock",
    on_text: Callable[[str], None] | None = None,
    key: str | None = None,
) -> tuple[ModelReply, dict[str, Any]]:
    async def play() -> tuple[ModelReply, dict[str, Any]]:
        async with chat(*script, model=model, key=key) as (asked, server):
            reply = await asked.reply(request or ask(), on_text)
            return reply, server.seen[0].body

    return run(play())


def fault(*script: Answer, stream: bool = False, model: str = "mock") -> ModelError:
    with pytest.raises(ModelError) as caught:
        answer(*script, model=model, on_text=[].append if stream else None, key=KEY)
    assert "mock at 127.0.0.1" in str(caught.value) or model in str(caught.value)
    return caught.value


def test_a_plain_question_and_its_answer():
    reply, body = answer(Answer("Good day"))
    assert reply.text == "Good day"
    assert reply.tool_requests == ()
    assert reply.model == "mock"
    assert reply.answerer == "model"
    assert reply.usage == Usage(input_tokens=2, output_tokens=3, cached_tokens=1)
    assert body == {"model": "mock", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize("model", [{}, {"model": None}, {"model": ""}], ids=repr)
@pytest.mark.parametrize("on_text", [None, [].append], ids=["whole", "in pieces"])
def test_where_no_model_is_named_it_is_the_one_that_was_asked(model, on_text):
    said = {"content": "Good day"}
    choice = {"finish_reason": "stop", "message": said, "delta": said}
    raw = json.dumps({"choices": [choice], **model}).encode()
    sent = Answer(raw=raw)
    if on_text:
        sent = Answer(raw=b"data: " + raw + b"\n\n", content_type="text/event-stream")
    reply, _ = answer(sent, model="mock-7", on_text=on_text)
    assert (reply.text, reply.model) == ("Good day", "mock-7")


def test_tools_and_output_are_described_as_the_interface_wants_them():
    schema = {
        "$schema": "x",
        "$ref": "#/$defs/Verdict",
        "$defs": {
            "Verdict": {
                "type": "object",
                "properties": {
                    "ok": {"type": "boolean"},
                    "why": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["ok"],
                "additionalProperties": False,
            }
        },
    }
    request = ask(tools=(LOOKUP,), output=OutputSchema("Verdict", schema))
    _, body = answer(Answer("{}"), request=request)
    described = {"name": "lookup", "description": "Find an order.", "parameters": LOOKUP.parameters}
    assert body["tools"] == [{"type": "function", "function": described}]
    assert body["tool_choice"] == "auto"
    sent = body["response_format"]["json_schema"]
    assert body["response_format"]["type"] == "json_schema"
    assert sent["name"] == "Verdict"
    assert sent["strict"] is True
    assert sent["schema"]["type"] == "object"
    assert sent["schema"]["required"] == ["ok", "why"]
    assert "$schema" not in sent["schema"]


@pytest.mark.parametrize("stream", [False, True])
def test_settings_stand_beside_tools_and_output(stream: bool):
    settings = ModelSettings(temperature=0.5, stop=("X",), extra_body={"user": "u"})
    output = OutputSchema("Verdict", {"type": "object", "properties": {}})
    request = ask(tools=(LOOKUP,), output=output, settings=settings)
    _, body = answer(Answer("{}"), request=request, on_text=[].append if stream else None)
    keys = ["model", "messages", "temperature", "stop", "user", "tools", "tool_choice"]
    keys += ["response_format", *(["stream", "stream_options"] if stream else [])]
    assert list(body) == keys
    assert (body["temperature"], body["stop"], body["user"]) == (0.5, ["X"], "u")


async def test_settings_of_one_call_are_not_those_of_the_next():
    async with chat() as (model, server):
        for seed in (1, 2, None):
            settings = None if seed is None else ModelSettings(seed=seed)
            await model.reply(ask(tools=(LOOKUP,), settings=settings))
        assert ([seen.body.get("seed") for seen in server.seen]) == [1, 2, None]


def test_a_conversation_with_tool_calls_is_sent_as_it_is():
    messages = (
        said("system", "You help. \u00e9 \U0001f600"),
        said("user", "Where is A1?"),
        called("c1", "lookup", '{"order": "A1"}'),
        said("tool", "on its way", tool_call_id="c1"),
    )
    _, body = answer(Answer("Soon"), request=ask(*messages))
    assert body["messages"] == [dict(message) for message in messages]


def test_tool_calls_come_back_in_order_with_their_arguments():
    calls = (Call("lookup", '{"order": "A1", "depth": 2}', id="x"), Call("lookup", "", id="y"))
    reply, _ = answer(Answer("", calls=calls))
    assert reply.text == ""
    assert reply.tool_requests == (
        ToolRequest("x", "lookup", {"order": "A1", "depth": 2}),
        ToolRequest("y", "lookup", {}),
    )


def test_calls_without_an_identity_of_their_own_get_one():
    calls = (Call("lookup", id=""), Call("lookup", id="a"), Call("lookup", id="a"))
    reply, _ = answer(Answer("", calls=calls))
    ids = [request.id for request in reply.tool_requests]
    assert ids == ["call_run1_7_0", "a", "call_run1_7_2"]


def test_arguments_may_come_as_an_object():
    function = {"name": "lookup", "arguments": {"order": "A1"}}
    message = {"role": "assistant", "content": None, "tool_calls": [{"function": function}]}
    raw = json.dumps({"choices": [{"message": message}]}).encode()
    reply, _ = answer(Answer(raw=raw))
    assert reply.tool_requests[0].arguments == {"order": "A1"}
    assert reply.usage == NO_USAGE
    assert reply.model == "mock"


def test_refusal_is_the_reply():
    raw = b'{"choices": [{"message": {"content": null, "refusal": "I will not."}}], "usage": {}}'
    reply, _ = answer(Answer(raw=raw))
    assert reply.text == "I will not."
    assert reply.usage == NO_USAGE


def test_implausible_counts_are_unknown():
    usage = {"prompt_tokens": -1, "completion_tokens": True, "prompt_tokens_details": []}
    raw = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}).encode()
    reply, _ = answer(Answer(raw=raw))
    assert reply.usage == Usage()


@pytest.mark.parametrize("text", ["Hello, \u00e9t\u00e9 \U0001f600 world.", "a", "two  spaces "])
def test_streamed_text_comes_in_pieces_and_whole(text: str):
    pieces: list[str] = []
    reply, body = answer(Answer(text), on_text=pieces.append)
    assert "".join(pieces) == reply.text == text
    assert len(pieces) >= len(text.split())
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert reply.usage.input_tokens == 2
    assert reply.usage.cached_tokens == 1
    assert reply.model == "mock"


def test_streamed_tool_calls_are_put_together():
    calls = (Call("lookup", '{"order": "A1"}'), Call("lookup", '{"order": "B2"}'))
    pieces: list[str] = []
    reply, _ = answer(Answer("Let me see", calls=calls), on_text=pieces.append)
    assert reply.text == "Let me see"
    assert [request.arguments for request in reply.tool_requests] == [
        {"order": "A1"},
        {"order": "B2"},
    ]
    assert [request.id for request in reply.tool_requests] == ["call_1_0", "call_1_1"]


def test_a_stream_without_usage_is_unknown_usage():
    reply, _ = answer(Answer("x", usage=False), on_text=[].append)
    assert reply.usage == NO_USAGE


def test_reply_of_a_server_without_streaming_arrives_whole():
    raw = b'{"choices": [{"message": {"content": "all at once"}}]}'
    pieces: list[str] = []
    reply, _ = answer(Answer(raw=raw), on_text=pieces.append)
    assert pieces == ["all at once"] == [reply.text]
    pieces.clear()
    answer(Answer(raw=b'{"choices": [{"message": {}}]}'), on_text=pieces.append)
    assert pieces == []


def events(*lines: str) -> Answer:
    raw = "".join(f"{line}\n" for line in lines).encode()
    return Answer(raw=raw, content_type="text/event-stream")


def test_streams_of_other_servers_are_understood():
    pieces: list[str] = []
    stream = events(
        ": a comment",
        "event: message\r",
        'data:{"choices":[{"delta":{"content":"A"}}]}\r',
        "",
        'data: {"choices":[{"delta":{"tool_calls":[{"id":"q","function":{"name":"lookup"}}]}}]}',
        'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}',
        'data: {"choices":[{"delta":{"tool_calls":[{"index":null,"function":null}]}}]}',
        'data: {"choices":[{"delta":null,"finish_reason":"tool_calls"}]}',
        'data: {"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":4}}',
    )
    reply, _ = answer(stream, on_text=pieces.append)
    assert [piece for piece in pieces if piece] == ["A"]
    assert reply.tool_requests == (ToolRequest("q", "lookup", {}),)
    assert reply.usage == Usage(3, 4)


def test_nothing_after_the_end_of_a_stream_counts():
    line = 'data: {"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}'
    reply, _ = answer(events(line, "data: [DONE]", line), on_text=[].append)
    assert reply.text == "A"


def test_an_error_in_a_stream_is_an_error():
    caught = fault(events('data: {"error":{"message":"overloaded"}}'), stream=True)
    assert "overloaded" in str(caught)
    assert caught.retryable


def test_garbage_in_a_stream_is_an_error():
    caught = fault(events("data: {nonsense"), stream=True)
    assert "not a chat completion" in str(caught)
    assert caught.retryable


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_transient_error_may_be_retried(status: int):
    caught = fault(error(status, "come back later"))
    assert caught.retryable
    assert f"answered {status}: come back later" in str(caught)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_permanent_error_is_not_retried(status: int):
    caught = fault(error(status, f"no, not with {KEY}"))
    assert not caught.retryable
    assert f"answered {status}: no, not with (key)" in str(caught)
    assert KEY not in str(caught)
    assert KEY not in repr(caught.__cause__.__context__)


def test_hint_follows_the_error():
    text = str(fault(error(401, "Wrong key.")))
    assert text.endswith("answered 401: Wrong key. Check the key.")


def test_an_empty_account_is_not_waited_for():
    raw = b'{"error": {"message": "You have no credit", "code": "insufficient_quota"}}'
    caught = fault(Answer(status=429, raw=raw))
    assert not caught.retryable


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain words", "answered 500: plain words"),
        (b"", "answered 500"),
        (b'"a text"', "answered 500: a text"),
        (b"[1, 2]", "answered 500: [1, 2]"),
        (b'{"error": "a text"}', "answered 500: a text"),
        (b'{"message": "outside"}', "answered 500: outside"),
        (b'{"detail": "explained"}', "answered 500: explained"),
        (b'{"error": {"code": 5}}', "answered 500: {'code': 5}"),
    ],
)
def test_errors_in_any_form_are_quoted(raw: bytes, text: str):
    said = str(fault(Answer(status=500, raw=raw)))
    assert said.endswith(f"{text}. Try again later, or name a fallback model.")


def test_a_redirect_is_a_wrong_address():
    caught = fault(Answer(status=307, raw=b"", headers=(("Location", "http://127.0.0.1/other"),)))
    assert not caught.retryable
    assert "It redirects to http://127.0.0.1/other: correct the base URL." in str(caught)


@pytest.mark.parametrize(
    ("headers", "seconds"), CASES["test_how_long_to_wait_is_what_the_provider_says"]
)
def test_how_long_to_wait_is_what_the_provider_says(
    headers: tuple[tuple[str, str], ...], seconds: float | None
):
    caught = fault(Answer(status=429, raw=b"{}", headers=headers))
    assert caught.after_seconds == seconds


@pytest.mark.parametrize("kind", ["garbage", "empty", "no_choices", "types"])
@pytest.mark.parametrize("stream", [False, True])
def test_response_without_a_completion_is_reported(kind: str, stream: bool):
    caught = fault(FAULTS[kind], stream=stream)
    assert caught.retryable
    assert "not a chat completion" in str(caught)


@pytest.mark.parametrize("kind", ["bad_arguments", "list_arguments"])
@pytest.mark.parametrize("stream", [False, True])
def test_arguments_that_cannot_be_read_are_quoted(kind: str, stream: bool):
    caught = fault(FAULTS[kind], stream=stream)
    assert caught.retryable
    assert "arguments for lookup cannot be read" in str(caught)


def test_truncated_arguments_are_reported():
    caught = fault(Answer("", calls=(Call("lookup", '{"order": "A'),), finish="length"))
    assert "the reply was truncated (token limit)" in str(caught)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("finish", "kept"),
    [
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("stop", ""),
        ("end_turn", ""),
        ("function_call", ""),
    ],
)
def test_why_a_reply_ends_is_kept_unless_it_was_simply_done(stream: bool, finish: str, kept: str):
    reply, _ = answer(Answer("Once upon", finish=finish), on_text=[].append if stream else None)
    assert (reply.text, reply.finish_reason) == ("Once upon", kept)


@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_reply_is_a_reply(stream: bool):
    reply, _ = answer(Answer("", finish="length"), on_text=[].append if stream else None)
    assert (reply.text, reply.tool_requests, reply.finish_reason) == ("", (), "length")


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_are_an_ordinary_end(stream: bool):
    called_for = Answer("", calls=(Call("lookup", "{}", id="x"),))
    assert answer(called_for, on_text=[].append if stream else None)[0].finish_reason == ""


def test_numbers_that_are_none_are_refused():
    caught = fault(Answer("", calls=(Call("lookup", '{"order": NaN}'),)))
    assert "cannot be read" in str(caught)


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_that_is_cut_may_be_tried_again(stream: bool):
    caught = fault(FAULTS["cut"], stream=stream)
    assert caught.retryable


def test_a_stream_that_just_stops_was_cut():
    caught = fault(events('data: {"choices":[{"delta":{"content":"A"}}]}'), stream=True)
    assert caught.retryable
    assert "ended early" in str(caught)


def test_content_filter_is_an_error():
    caught = fault(Answer("", finish="content_filter"))
    assert not caught.retryable
    assert "content filter" in str(caught)
    assert answer(Answer("partly", finish="content_filter"))[0].text == "partly"


@pytest.mark.parametrize(("code", "retryable"), [(429, True), (401, False), ("x", True)])
def test_gateways_that_answer_well_and_send_an_error(code: object, retryable: bool):
    raw = json.dumps({"error": {"message": "upstream", "code": code}}, separators=(",", ":"))
    caught = fault(Answer(raw=raw.encode()))
    assert "upstream" in str(caught)
    assert caught.retryable is retryable


def test_an_error_without_words_is_quoted_as_it_is():
    assert '{"error":""}' in str(fault(Answer(raw=b'{"error":""}')))


async def test_a_server_that_is_not_there_may_be_tried_again():
    async with MockServer() as server:
        url = server.base_url
    connections = Connections()
    with pytest.raises(ModelError, match=r"no connection: .*Is the server running") as caught:
        await ChatModel(Endpoint(url), "mock", connections).reply(ask())
    assert caught.value.retryable
    await connections.close()


async def test_a_server_without_a_certificate_is_not_tried_again():
    async with MockServer() as server:
        connections = Connections()
        url = server.base_url.replace("http:", "https:")
        with pytest.raises(ModelError, match="no connection") as caught:
            await ChatModel(Endpoint(url), "mock", connections).reply(ask())
        assert not caught.value.retryable
        await connections.close()


async def test_the_key_goes_into_its_header_and_nowhere_else():
    connections = Connections()
    async with MockServer() as server:
        bearer = Endpoint(server.base_url, KEY)
        azure = Endpoint(f"{server.base_url}/deployments/d?api-version=1", KEY, "api-key")
        for endpoint in (bearer, azure, Endpoint(server.base_url)):
            await ChatModel(endpoint, "mock", connections).reply(ask())
            assert KEY not in repr(endpoint)
        first, second, third = server.seen
    await connections.close()
    assert first.headers["Authorization"] == f"Bearer {KEY}"
    assert second.headers["api-key"] == KEY
    assert second.path == "/v1/deployments/d/chat/completions?api-version=1"
    assert "Authorization" not in {**second.headers, **third.headers}
    assert third.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://127.0.0.1/v1", "http://", "http://[::1"])
def test_invalid_address_is_refused(url: str):
    with pytest.raises(UsageError, match="not the URL of a model server"):
        ChatModel(Endpoint(url), "mock", Connections())


@pytest.mark.parametrize("key", ["two\nlines", "schl\u00fcssel"])
def test_invalid_key_is_refused_and_not_shown(key: str):
    with pytest.raises(UsageError) as caught:
        ChatModel(Endpoint("http://127.0.0.1/v1", key), "mock", Connections())
    assert key not in str(caught.value)


async def test_connections_are_used_again():
    ports: set[int] = set()

    async def handle(request: web.BaseRequest) -> web.Response:
        ports.add(request.transport.get_extra_info("peername")[1])
        body = await request.json()
        if body.get("stream"):
            line = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
            raw = line + b"data: [DONE]\n\n"
            return web.Response(body=raw, content_type="text/event-stream")
        return web.Response(body=b'{"choices":[{"message":{}}]}')

    web_server = web.Server(handle)
    server = await asyncio.get_running_loop().create_server(web_server, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections = Connections()
    model = ChatModel(Endpoint(f"http://127.0.0.1:{port}/v1"), "m", connections)
    for on_text in (None, [].append, [].append, None):
        await model.reply(ask(), on_text)
    assert len(ports) == 1
    await connections.close()
    await connections.close()
    await model.reply(ask())
    assert len(ports) == 2
    await connections.close()
    server.close()
    await web_server.shutdown(1)


async def test_a_server_that_lingers_after_the_end_does_not_hold_the_reply(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(openai_http, "_DRAIN_SECONDS", 0.05)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"A"}}]}\n\ndata: [DONE]\n')
        await asyncio.sleep(5)
        return response

    web_server = web.Server(handle, handler_cancellation=True)
    server = await asyncio.get_running_loop().create_server(web_server, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections = Connections()
    model = ChatModel(Endpoint(f"http://127.0.0.1:{port}"), "m", connections)
    async with asyncio.timeout(3):
        assert (await model.reply(ask(), [].append)).text == "A"
    await connections.close()
    server.close()
    await web_server.shutdown(1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_without_end_is_given_up(stream: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openai_http, "MOST_BYTES", 10_000)
    caught = fault(Answer("x" * 20_000), stream=stream)
    assert "longer than" in str(caught)
    assert not caught.retryable


def test_long_lines_of_a_stream_are_put_together():
    text = "x" * 300_000
    reply, _ = answer(Answer(text), on_text=[].append)
    assert reply.text == text


def test_long_conversations_are_sent():
    reply, body = answer(Answer("ok"), request=ask(said("user", "x" * 1_500_000)))
    assert reply.text == "ok"
    assert len(body["messages"][0]["content"]) == 1_500_000


def test_message_that_is_not_text_is_not_sent():
    with pytest.raises(ModelError, match="cannot be written as JSON") as caught:
        answer(Answer(), request=ask(said("user", "\ud800")))
    assert not caught.value.retryable


async def test_cancelling_a_call_cancels_it_and_leaves_nothing_behind():
    async with chat(FAULTS["hang"], Answer("next")) as (model, server):
        task = asyncio.create_task(model.reply(ask()))
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await model.reply(ask())).text == "next"
    gc.collect()


async def test_many_at_once_each_get_their_own():
    def echo(body: dict[str, Any]) -> Answer:
        return Answer(body["messages"][0]["content"])

    connections = Connections()
    async with MockServer(decide=echo) as server:
        model = ChatModel(Endpoint(server.base_url), "mock", connections)
        asked = [model.reply(ask(said("user", str(at)))) for at in range(300)]
        replies = await asyncio.gather(*asked)
        await connections.close()
    assert ([reply.text for reply in replies]) == [str(at) for at in range(300)]


async def test_schemas_are_encoded_once_for_the_same_objects_and_never_mixed_up():
    def tool(name: str) -> ToolSchema:
        return ToolSchema(name, "", {"type": "object", "properties": {}})

    async with chat() as (model, server):
        for at in range(MOST_TAILS + 10):
            await model.reply(ask(tools=(tool(f"t{at}"),)))
        assert ([seen.body["tools"][0]["function"]["name"] for seen in server.seen]) == [
            f"t{at}" for at in range(MOST_TAILS + 10)
        ]


def test_the_mock_server_does_what_the_marks_say():
    system = 'You sell. [[call lookup {"order": "A1"}]] Then [[say It is on its way.]]'
    first, _ = answer(request=ask(said("system", system), said("user", "Where?")))
    assert first.tool_requests[0].arguments == {"order": "A1"}
    history = (called("c1", "lookup"), said("tool", "ok", tool_call_id="c1"))
    second, _ = answer(request=ask(said("system", system), said("user", "Where?"), *history))
    assert second.text == "It is on its way."


async def test_the_mock_server_fails_as_the_model_name_says():
    async with chat(model="fault:500*2") as (model, _):
        for _ in range(2):
            with pytest.raises(ModelError, match="answered 500"):
                await model.reply(ask())
        assert (await model.reply(ask())).text == "ok"
