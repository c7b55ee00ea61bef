"""Assembly: everything an agent is sent in one call, with a manifest that says where it is from."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from pydantic_core import to_json

from weft.context.history import HistoryLimits, Window, window
from weft.context.segment import LeftOut, Segment, over_budget
from weft.context.steps import step_messages
from weft.context.values import shown, value_of
from weft.context.view import (
    BoardSlice,
    Section,
    StepMessages,
    VariableList,
    View,
    extras,
    headed,
    schemas,
)
from weft.engine.state import Activation, State
from weft.engine.turn.offered import offered_tools
from weft.findings import Json
from weft.ports.model import ChatMessage, ToolSchema
from weft.spec.agents import estimate

_VARIABLES_HEADING: Final = "[CONTEXT VARIABLES]"
_BOARD_HEADING: Final = "[CONTEXT]"
_TOLD: Final = frozenset({"type", "payload", "produced_by", "tags", "key"})


class Assembly(NamedTuple):
    """What is sent, piece by piece and as messages, and what is left out."""

    messages: list[ChatMessage]
    pieces: list[Segment | Window]
    left_out: list[LeftOut]
    #: What is sent with the messages: tools and output, encoded.
    extras: bytes
    tools: tuple[ToolSchema, ...] = ()
    #: The hooks that have changed what is sent.
    edited: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The hash of everything that is sent."""
        return digest_of(self.messages, self.extras)

    @property
    def manifest(self) -> dict[str, Any]:
        """What the journal keeps: origins, sizes and what was left out, but no text."""
        manifest: dict[str, Any] = {
            "tokens": self._tokens,
            "counted": "estimated",
            "segments": [piece.entry for piece in self.pieces],
            "left_out": self.left_out,
        }
        return {**manifest, "edited": list(self.edited)} if self.edited else manifest

    @property
    def _tokens(self) -> int:
        """About how much is sent; of what hooks have changed, the messages as they are then."""
        if not self.edited:
            return sum(piece.tokens for piece in self.pieces)
        beside = sum(it.tokens for it in self.pieces if isinstance(it, Segment) and not it.role)
        return beside + sum(estimate(it["content"] or "") for it in self.messages)

    def slices(self) -> Iterator[Segment]:
        """Yield everything that is sent, with its text; the conversation message by message."""
        for piece in self.pieces:
            if isinstance(piece, Segment):
                yield piece
            else:
                yield from piece.slices()


def digest_of(messages: Sequence[ChatMessage], extras: bytes) -> str:
    """Return the hash of what is sent, as a journal keeps it with every assembled context."""
    return hashlib.sha256(to_json(messages) + extras).hexdigest()


def assemble(view: View, state: State, turn: int) -> Assembly:
    """Put together what an agent sees in a turn now.

    The same view and state always give the same bytes; while its model is asked, the values are
    those it was shown, whatever has changed since.
    """
    active = state.active.get(turn)
    fixed = active.shown if active else None
    values = state.values_of(turn) if fixed is None else fixed
    messages: list[ChatMessage] = []
    pieces: list[Segment | Window] = []
    left_out = list(view.left_out)
    texts: list[str] = []
    for piece in view.pieces:
        if isinstance(piece, HistoryLimits):
            _flush(texts, messages)
            made = _window(view, state, turn, piece)
            messages += made.messages
            if made.cut:
                left_out.append(made.left_out)
            if made.messages:
                pieces.append(made)
            continue
        if isinstance(piece, StepMessages):
            _flush(texts, messages)
            told = step_messages(piece, state, turn, values)
            messages += told.messages
            pieces += told.pieces
            left_out += told.left_out
            continue
        if isinstance(piece, BoardSlice):
            text = _slice(piece, active, left_out)
        else:
            text = _text(piece, state, values, left_out)
        if text is not None:
            texts.append(text.text)
            pieces.append(text)
    _flush(texts, messages)
    edits = active.edits if active else ()
    if not edits and not (state.offered and view.servers):
        pieces += view.schemas
        return Assembly(messages, pieces, left_out, view.extras, view.tools)
    tools = (*view.tools, *_offered(view, state))
    pieces += schemas(tools, view.output)
    for edit in edits:
        messages = _edited(messages, edit)
    by = tuple(dict.fromkeys(str(it["by"]) for it in edits))
    return Assembly(messages, pieces, left_out, extras(tools, view.output), tools, by)


def _offered(view: View, state: State) -> Iterator[ToolSchema]:
    """Yield the tools of servers as they were when the run began."""
    for name, tool in offered_tools(state, view.servers).items():
        described = str(tool.schema["description"])
        yield ToolSchema(name, described, cast("dict[str, Any]", tool.schema["parameters"]))


def _edited(messages: list[ChatMessage], edit: Mapping[str, Json]) -> list[ChatMessage]:
    """Return what is sent after a hook: other instructions, other messages, another last one."""
    cut = 1 if messages and messages[0]["role"] == "system" else 0
    head, rest = messages[:cut], messages[cut:]
    if "system" in edit:
        instructions: ChatMessage = {"role": "system", "content": str(edit["system"])}
        head = [instructions]
    if "messages" in edit:
        rest = cast("list[ChatMessage]", edit["messages"])
    if "last" in edit and rest:
        last: ChatMessage = {**rest[-1], "content": str(edit["last"])}
        rest = [*rest[:-1], last]
    return [*head, *rest]


def _flush(texts: list[str], messages: list[ChatMessage]) -> None:
    """Send the texts so far as one message, so that nothing that follows comes before them."""
    if texts:
        messages.append({"role": "system", "content": "\n\n".join(texts)})
        texts.clear()


def _window(view: View, state: State, turn: int, past: HistoryLimits) -> Window:
    thread = state.thread_of(turn)
    active = state.active.get(turn)
    # What an agent is shown depends on its role; what it has said is said under its name.
    agent = active.agent if active is not None and active.step else view.agent
    if past.kind == "history":
        return window(thread, agent, past)
    return window(thread, agent, past, active.call - 1 if active is not None else 0)


def _text(
    piece: Segment | Section | VariableList,
    state: State,
    values: Mapping[str, Json],
    left_out: list[LeftOut],
) -> Segment | None:
    if isinstance(piece, Segment):
        return piece
    if isinstance(piece, VariableList):
        return _listing(piece, state, values, left_out)
    filled = "".join(
        part if isinstance(part, str) else shown(value_of(state, values, part.name))
        for part in piece.parts
    )
    text = headed(piece.heading, filled)
    return Segment("prompt", piece.origin, text, estimate(text))


def _slice(piece: BoardSlice, active: Activation | None, left_out: list[LeftOut]) -> Segment | None:
    """List the artifacts a provider gave; what does not fit is left out from the end."""
    fetched = cast("Mapping[str, Any]", (active.fetched if active else None) or {})
    engines: list[int] = fetched.get("engines") or []
    if active is None or active.at >= len(engines):
        return None
    given = fetched["slices"][engines[active.at]]
    lines = [json.dumps(_told(it), ensure_ascii=False) for it in given["items"]]
    ids = [it.get("id") for it in given["items"]]
    text = "\n".join((_BOARD_HEADING, *lines))
    budget = piece.max_tokens
    if budget is not None and estimate(text) > budget:
        while lines and estimate(text) > budget:
            lines.pop()
            text = "\n".join((_BOARD_HEADING, *lines))
        rest = {"kind": "board", "origin": piece.origin, "names": ids[len(lines) :]}
        left_out.append({**rest, "reason": over_budget(budget)})
    if not lines:
        return None
    facts = {
        "provider": given["provider"],
        "items": ids[: len(lines)],
        "redacted": given["metadata"].get("redacted", []),
    }
    return Segment("board", piece.origin, text, estimate(text), facts=facts)


def _told(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is told of an artifact."""
    return {key: it for key, it in item.items() if key in _TOLD and it}


def _listing(
    piece: VariableList, state: State, values: Mapping[str, Json], left_out: list[LeftOut]
) -> Segment | None:
    """List variables with their values; what does not fit is left out from the end."""
    labelled = zip(piece.labels, piece.names, strict=True)
    lines = [f"{label}: {shown(value_of(state, values, name))}" for label, name in labelled]
    text = "\n".join((_VARIABLES_HEADING, *lines))
    budget = piece.max_tokens
    if budget is not None and estimate(text) > budget:
        while lines and estimate(text) > budget:
            lines.pop()
            text = "\n".join((_VARIABLES_HEADING, *lines))
        rest = list(piece.names[len(lines) :])
        left_out.append(
            {
                "kind": "variables",
                "origin": piece.origin,
                "names": rest,
                "reason": over_budget(budget),
            }
        )
    if not lines:
        return None
    names = list(piece.names[: len(lines)])
    return Segment("variables", piece.origin, text, estimate(text), facts={"names": names})
