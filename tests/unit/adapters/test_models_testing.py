"""The models of the test kit, and the guard that keeps tests on this machine."""

import asyncio
import json
import socket

import aiohttp
import pytest

from support.model_play import ask, run
from weft.errors import ModelError, UsageError
from weft.ports.model import ModelReply, ModelRequest
from weft.testing.models import FunctionModel, Line, ScriptedModel, call
from weft.testing.network import no_network


def test_a_script_for_all_agents_is_read_in_order():
    whole = ModelReply("whole", model="own")
    model = ScriptedModel(["Hello", {"ok": True}, call("lookup", order="A1"), whole])
    assert model.left == 4
    texts = [run(model.reply(ask(agent=name))) for name in ("A", "B", "C", "D")]
    assert texts[0].text == "Hello"
    assert texts[0].answerer == "script"
    assert texts[0].model == "mock"
    assert json.loads(texts[1].text) == {"ok": True}
    assert texts[2].tool_requests[0].tool == "lookup"
    assert texts[2].tool_requests[0].arguments == {"order": "A1"}
    assert texts[3] is whole
    assert [request.agent for request in model.requests] == ["A", "B", "C", "D"]
    assert model.left == 0


def test_a_script_for_each_agent():
    model = ScriptedModel({"A": ["one", "two"], "B": [[call("x"), call("y", z=1)]]})
    assert model.left == 3
    assert run(model.reply(ask(agent="A"))).text == "one"
    calls = run(model.reply(ask(agent="B"))).tool_requests
    assert [call.tool for call in calls] == ["x", "y"]
    assert len({call.id for call in calls}) == 2
    assert run(model.reply(ask(agent="A"))).text == "two"


def test_calls_are_also_written_as_objects_and_with_text():
    model = ScriptedModel([["One ", {"x": {"a": 1}}, "moment.", call("y")], None])
    reply = run(model.reply(ask()))
    assert reply.text == "One moment."
    assert [(each.tool, each.arguments) for each in reply.tool_requests] == [
        ("x", {"a": 1}),
        ("y", {}),
    ]
    with pytest.raises(ModelError, match="the model fails, as the script says"):
        run(model.reply(ask()))


def test_a_text_alone_is_the_only_line_of_a_script():
    for model in (ScriptedModel("hello"), ScriptedModel({"A": "hello", "B": []})):
        assert model.left == 1
        assert run(model.reply(ask(agent="A"))).text == "hello"
        with pytest.raises(ModelError, match="no line left"):
            run(model.reply(ask(agent="A")))


def test_an_error_in_a_script_is_raised():
    with pytest.raises(ModelError, match="busy"):
        run(ScriptedModel([ModelError("busy")]).reply(ask()))


def test_whatever_a_script_raises_is_the_failure_of_a_model():
    with pytest.raises(ModelError, match=r"^ValueError: no good$"):
        run(ScriptedModel([ValueError("no good")]).reply(ask()))


def test_a_script_that_is_used_up_says_so():
    model = ScriptedModel({"A": ["one"]})
    run(model.reply(ask(agent="A")))
    with pytest.raises(ModelError, match="no line left for A: this is request number 2"):
        run(model.reply(ask(agent="A")))
    with pytest.raises(ModelError, match="no line left for B"):
        run(model.reply(ask(agent="B")))


@pytest.mark.parametrize("text", ["Hello there, you.", "  two  spaces ", "\n", ""])
def test_scripted_text_is_spoken_in_pieces(text: str):
    heard: list[str] = []
    run(ScriptedModel([text]).reply(ask(), heard.append))
    assert "".join(heard) == text


def test_a_function_answers():
    def shout(request: ModelRequest) -> Line:
        return str(request.messages[-1]["content"]).upper()

    async def later(request: ModelRequest) -> Line:
        await asyncio.sleep(0)
        return ModelReply(request.agent)

    model = FunctionModel(shout)
    assert run(model.reply(ask())).text == "HELLO"
    assert len(model.requests) == 1
    reply = run(FunctionModel(later).reply(ask()))
    assert (reply.text, reply.model) == ("Helper", "mock")


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1/", "http://example.com/", "http://[2001:db8::1]/"]
)
def test_no_test_leaves_the_machine(url: str):
    async def play() -> None:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(UsageError, match="tests may only use this machine"):
                await session.get(url)

    run(play())


def test_look_ups_and_plain_sockets_are_guarded_too():
    with pytest.raises(UsageError):
        socket.getaddrinfo(b"example.com", 80)
    with socket.socket() as one, pytest.raises(UsageError):
        one.connect_ex(("192.0.2.1", 80))


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("localhost", port)).close()
        socket.create_connection(("127.0.0.1", port)).close()
    assert socket.getaddrinfo(None, 80)


def test_other_kinds_of_sockets_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("s")
        server.listen()
        client.connect("s")


def test_the_guard_is_taken_away_again():
    before = (socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo)
    with no_network():
        assert socket.socket.connect is not before[0]
    assert (socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo) == before
