"""A language model that costs nothing: an OpenAI-compatible server on 127.0.0.1.

    python benchmarks/mock_server.py --port 0 --latency-ms 200 [--answers FILE.py]

It prints its port on the first line, answers any path that ends in /chat/completions, streaming or
not, and stops on SIGTERM, SIGINT, or when its standard input is closed with --until-eof.

What it answers is decided, in this order, by
- the script, in Python: `MockServer(script=[...])`, one entry per request until it is used up;
- the name of the model: `fault:KIND` or `fault:KIND*N` (the first N requests), see FAULTS;
- `--answers FILE.py`: its function `decide(body) -> Answer`;
- marks in the system message, `[[call TOOL {"json": "arguments"}]]` and `[[say TEXT]]`: the first
  one is performed whose tool has not been called in the conversation.
"""

import asyncio
import re
import runpy
import signal
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from itertools import count
from typing import Any, Final, Literal, Self

from pydantic_core import from_json, to_json

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of an answer; the arguments are text, so that they may be wrong."""

    tool: str
    arguments: str = "{}"
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request."""

    text: str = "ok"
    calls: tuple[Call, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    #: Sent as it is instead of a completion.
    raw: bytes | None = None
    content_type: str = "application/json"
    #: cut: the connection ends in the middle of the answer; hang: nothing is ever sent.
    trouble: Literal["cut", "hang"] | None = None
    finish: str | None = None
    latency: float = 0.0
    usage: bool = True


def error(status: int, message: str, **headers: str) -> Answer:
    """Return an answer in the form of the provider's errors."""
    raw = to_json({"error": {"message": message, "type": "mock", "code": None}})
    lines = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status=status, raw=raw, headers=lines)


def _types() -> Answer:
    return Answer(raw=b'{"id": 7, "model": [], "choices": {"message": 3}, "usage": "many"}')


#: What goes wrong with the model `fault:KIND`.
FAULTS: Final[dict[str, Answer]] = {
    "400": error(400, "the request is not understood"),
    "401": error(401, "the key is not valid"),
    "404": error(404, "there is no such model"),
    "429": error(429, "too many requests", Retry_After="0.05"),
    "500": error(500, "the server has an inner fault"),
    "503": error(503, "the server is overloaded"),
    "cut": Answer(text="this text never comes to an end " * 20, trouble="cut"),
    "hang": Answer(trouble="hang"),
    "garbage": Answer(raw=b"<html>not { json"),
    "empty": Answer(raw=b""),
    "no_choices": Answer(raw=b'{"id": "x", "choices": []}'),
    "types": _types(),
    "bad_arguments": Answer(text="", calls=(Call("lookup", '{"order": '),)),
    "list_arguments": Answer(text="", calls=(Call("lookup", "[1, 2]"),)),
    "unknown_tool": Answer(text="", calls=(Call("no_such_tool"),)),
}

MARK: Final = re.compile(r"\[\[(call|say) ?(.*?)\]\]", re.DOTALL)


@lru_cache(maxsize=1024)
def _marks(system: str) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    for verb, rest in MARK.findall(system):
        tool, _, arguments = rest.partition(" ")
        call = (Call(tool, arguments or "{}"),)
        answers.append(Answer(text=rest) if verb == "say" else Answer(text="", calls=call))
    return tuple(answers)


def by_marks(body: Body) -> Answer:
    """Do what the marks of the system message say, or reply `ok`."""
    messages = body["messages"]
    system = messages[0]["content"] if messages else ""
    answers = _marks(system) if isinstance(system, str) else ()
    called = {
        call["function"]["name"]
        for message in messages
        if message["role"] == "assistant"
        for call in message.get("tool_calls") or ()
    }
    waiting = (
        answer for answer in answers if not answer.calls or answer.calls[0].tool not in called
    )
    return next(waiting, answers[-1] if answers else Answer())


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Body


class MockServer:
    """The server, as an async context manager; `base_url` is where clients are pointed."""

    def __init__(
        self,
        script: Iterable[Answer] = (),
        *,
        decide: Callable[[Body], Answer] = by_marks,
        latency: float = 0.0,
        port: int = 0,
        record: bool = True,
    ) -> None:
        self.port = port
        self.requests = 0
        self.seen: list[Seen] = []
        #: Set when the first request has come.
        self.arrived = asyncio.Event()
        self.record = record
        #: Numbers of completions and tool calls.
        self.numbers = count(1)
        self._script = list(script)
        self._decide = decide
        self._latency = latency
        self._faulted: Counter[str] = Counter()
        self._connections: set[asyncio.BaseTransport] = set()

    @property
    def base_url(self) -> str:
        """Where the interface begins."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._socket = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self, self._connections), "127.0.0.1", self.port, backlog=4096
        )
        self.port = self._socket.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()
        for transport in list(self._connections):
            transport.close()
        await self._socket.wait_closed()

    def answer(self, body: Body) -> tuple[Answer, float]:
        """Decide what to answer, and after how many seconds."""
        self.requests += 1
        self.arrived.set()
        answer = self._scripted(body)
        return answer, answer.latency or self._latency

    def _scripted(self, body: Body) -> Answer:
        if self._script:
            return self._script.pop(0)
        model = body.get("model", "")
        if model.startswith("fault:"):
            kind, _, most = model[len("fault:") :].partition("*")
            self._faulted[model] += 1
            if not most or self._faulted[model] <= int(most):
                return FAULTS[kind]
        return self._decide(body)


class _Connection(asyncio.Protocol):
    """One connection: HTTP/1.1 as far as clients of this interface use it, and no further.

    A server with a framework costs as much as the client that is measured against it, and would
    then be what limits both; this one costs a fifth of that.
    """

    def __init__(self, server: MockServer, connections: set[asyncio.BaseTransport]) -> None:
        self._server = server
        self._connections = connections
        self._buffer = bytearray()
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._connections.add(transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self._connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer[:1].isalpha():
            self._next()
        else:  # no request begins so; a client that wants TLS does
            self._transport.write(_head(error(400, "no request"), 0))
            self._transport.close()

    def _next(self) -> None:
        """Take the next request out of the buffer if it is there as a whole."""
        end = self._buffer.find(b"\r\n\r\n")
        if self._busy or end < 0:
            return
        head = bytes(self._buffer[:end])
        size = _LENGTH.search(head)
        whole = end + 4 + (int(size[1]) if size else 0)
        if len(self._buffer) < whole:
            return
        raw = bytes(self._buffer[end + 4 : whole])
        del self._buffer[:whole]
        self._busy = True
        self._request(head, raw)

    def _request(self, head: bytes, raw: bytes) -> None:
        path = head.split(b" ", 2)[1].decode()
        if not path.partition("?")[0].endswith("/chat/completions"):
            self._send(_elsewhere(path), {})
            return
        body: Body = from_json(raw)
        if self._server.record:
            self._server.seen.append(Seen(path, _headers(head), body))
        answer, wait = self._server.answer(body)
        if wait:
            asyncio.get_running_loop().call_later(wait, self._send, answer, body)
        else:
            self._send(answer, body)

    def _send(self, answer: Answer, body: Body) -> None:
        if answer.trouble == "hang" or self._transport.is_closing():
            return
        if answer.raw is not None:
            self._transport.write(_head(answer, len(answer.raw)) + answer.raw)
        elif body.get("stream"):
            self._stream(body, answer)
        else:
            whole = to_json(_completion(body, answer, next(self._server.numbers)))
            cut = len(whole) // 2 if answer.trouble == "cut" else len(whole)
            self._transport.write(_head(answer, len(whole)) + whole[:cut])
        if answer.trouble == "cut":
            self._transport.close()
        self._busy = False
        self._next()

    def _stream(self, body: Body, answer: Answer) -> None:
        """Send every piece by itself, as it would come."""
        self._transport.write(_head(replace(answer, content_type="text/event-stream"), None))
        pieces = _pieces(body, answer, next(self._server.numbers))
        for piece in pieces[: len(pieces) // 2] if answer.trouble == "cut" else pieces:
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if answer.trouble != "cut":
            self._transport.write(b"0\r\n\r\n")


_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


def _headers(head: bytes) -> dict[str, str]:
    lines = (line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:])
    return {name: value for name, _, value in lines}


def _head(answer: Answer, length: int | None) -> bytes:
    """Write the first lines of a response; without a length it comes in chunks."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
    first = f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, 'Unknown')}\r\n"
    return f"{first}Content-Type: {answer.content_type}\r\n{size}\r\n{more}\r\n".encode()


def _elsewhere(path: str) -> Answer:
    if path.endswith("/models"):
        listed = {"object": "list", "data": [{"id": "mock", "object": "model"}]}
        return Answer(raw=to_json(listed))
    return error(404, f"there is nothing at {path}")


def _completion(body: Body, answer: Answer, number: int) -> Body:
    message: Body = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_call(call, number, at) for at, call in enumerate(answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    usage = {"usage": _usage(body, answer)} if answer.usage else {}
    return {**_frame(body, number, "chat.completion"), "choices": [choice], **usage}


def _frame(body: Body, number: int, kind: str) -> Body:
    model = body.get("model", "")
    return {"id": f"mock-{number}", "object": kind, "created": 1763000000, "model": model}


def _pieces(body: Body, answer: Answer, number: int) -> list[bytes]:
    """Cut an answer into the events of a stream."""
    frame = _frame(body, number, "chat.completion.chunk")
    ends = [({}, _finish(answer))]
    events = [
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in [*((part, None) for part in _deltas(answer, number)), *ends]
    ]
    if answer.usage and (body.get("stream_options") or {}).get("include_usage"):
        events.append({**frame, "choices": [], "usage": _usage(body, answer)})
    return [*(b"data: " + to_json(event) + b"\n\n" for event in events), b"data: [DONE]\n\n"]


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.calls else "stop")


def _call(call: Call, number: int, at: int) -> Body:
    id_ = f"call_{number}_{at}" if call.id is None else call.id
    function = {"name": call.tool, "arguments": call.arguments}
    return {"id": id_, "type": "function", "function": function}


def _deltas(answer: Answer, number: int) -> Iterable[Body]:
    """Cut an answer into what a stream brings: words, then tool calls in two pieces each."""
    yield {"role": "assistant", "content": ""}
    for word in re.findall(r"\s*\S+\s*\Z|\s*\S+|\s+\Z", answer.text):
        yield {"content": word}
    for at, call in enumerate(answer.calls):
        half = len(call.arguments) // 2
        first = _call(replace(call, arguments=call.arguments[:half]), number, at)
        yield {"tool_calls": [{"index": at, **first}]}
        rest = {"index": at, "function": {"arguments": call.arguments[half:]}}
        yield {"tool_calls": [rest]}


def _usage(body: Body, answer: Answer) -> Body:
    """Count about four characters as one token; every second one of the input was cached."""
    contents = (message["content"] for message in body["messages"])
    length = sum(len(content) for content in contents if isinstance(content, str))
    written = len(answer.text) + sum(len(call.arguments) for call in answer.calls)
    given, taken = length // 4 + 1, written // 4 + 1
    return {
        "prompt_tokens": given,
        "completion_tokens": taken,
        "total_tokens": given + taken,
        "prompt_tokens_details": {"cached_tokens": given // 2},
    }


async def serve(server: MockServer, *, until_eof: bool) -> None:
    """Run a server until a signal or the end of stdin stops it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with server:
        print(server.port, flush=True)
        if until_eof:
            loop.add_reader(sys.stdin.fileno(), _watch, stop)
        await stop.wait()
        if until_eof:
            loop.remove_reader(sys.stdin.fileno())


def _watch(stop: asyncio.Event) -> None:
    if not sys.stdin.buffer.raw.read(4096):
        stop.set()


def main() -> None:
    """Serve from the command line."""
    parser = ArgumentParser(description="An OpenAI-compatible server that makes up its answers.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="wait before each answer")
    parser.add_argument("--answers", help="Python file with a function decide(body) -> Answer")
    parser.add_argument("--until-eof", action="store_true", help="stop when stdin is closed")
    options = parser.parse_args()
    # The file may import this one by name: both must mean the same classes.
    sys.modules["mock_server"] = sys.modules["__main__"]
    decide = runpy.run_path(options.answers)["decide"] if options.answers else by_marks
    latency = options.latency_ms / 1000
    server = MockServer(decide=decide, latency=latency, port=options.port, record=False)
    asyncio.run(serve(server, until_eof=options.until_eof))


if __name__ == "__main__":
    main()
