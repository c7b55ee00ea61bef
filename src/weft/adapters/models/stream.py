"""A completion that comes in pieces, as server-sent events."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from weft.adapters.models.completion import make_reply, malformed
from weft.adapters.models.faults import provider_fault
from weft.errors import ModelError
from weft.ports.model import ModelReply, ModelRequest


@dataclass(frozen=True, slots=True)
class _Function:
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


@dataclass(frozen=True, slots=True)
class _Delta:
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


@dataclass(frozen=True, slots=True)
class _Choice:
    delta: _Delta | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Chunk:
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


_CHUNK: Final = TypeAdapter(_Chunk)
_NO_DELTA: Final = _Delta()
_NO_FUNCTION: Final = _Function()


class _OpenCall:
    """A tool call whose arguments are still coming."""

    def __init__(self) -> None:
        self.id = ""
        self.tool = ""
        self.arguments: list[str] = []


class StreamReader:
    """Takes bytes as they come, passes text on, and makes a reply of all of it."""

    def __init__(self, request: ModelRequest, on_text: Callable[[str], None]) -> None:
        self.done = False
        self._request = request
        self._on_text = on_text
        self._rest: list[bytes] = []
        self._text: list[str] = []
        self._calls: dict[int, _OpenCall] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self._model = ""

    def feed(self, data: bytes) -> None:
        """Take bytes; a line that is not whole yet waits for the next ones.

        Every `data` line is one event here: no provider spreads an event over several lines.
        """
        self._rest.append(data)
        if b"\n" not in data:
            return
        *lines, rest = b"".join(self._rest).split(b"\n")
        self._rest = [rest]
        for line in lines:
            if line.startswith(b"data:") and not self.done:
                self._event(line[5:].strip())

    def reply(self) -> ModelReply:
        """Return the reply; raises ModelError if the stream ended before it was whole."""
        if not self.done and self._finish is None:
            raise ModelError(
                "the stream of the reply was cut before its end. If that goes on, something "
                "between here and the provider gives up too early.",
                retryable=True,
            )
        ordered = [self._calls[at] for at in sorted(self._calls)]
        return make_reply(
            self._request,
            text="".join(self._text),
            calls=[(it.id, it.tool, "".join(it.arguments)) for it in ordered],
            finish=self._finish,
            usage=self._usage,
            model=self._model,
        )

    def _event(self, raw: bytes) -> None:
        if raw == b"[DONE]":
            self.done = True
            return
        try:
            chunk = _CHUNK.validate_json(raw)
        except ValidationError as error:
            raise malformed(error, raw) from None
        if chunk.error:
            raise provider_fault(raw)
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        for choice in (chunk.choices or ())[:1]:
            self._finish = choice.finish_reason or self._finish
            self._delta(choice.delta or _NO_DELTA)

    def _delta(self, delta: _Delta) -> None:
        text = delta.content or delta.refusal or ""
        self._text.append(text)
        self._on_text(text)  # Without words it tells that the model is at work on something else.
        for piece in delta.tool_calls or ():
            self._call(piece)

    def _call(self, piece: _Call) -> None:
        """Add a piece to its call; without an index it belongs to the last, unless it names one."""
        function = piece.function or _NO_FUNCTION
        name = function.name or ""
        index = piece.index
        if index is None:
            index = len(self._calls) if name or not self._calls else max(self._calls)
        call = self._calls.setdefault(index, _OpenCall())
        call.id = call.id or piece.id or ""
        call.tool = call.tool or name
        call.arguments.append(function.arguments or "")
