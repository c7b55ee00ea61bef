"""The prompt: everything an agent is sent in one call, with a manifest of the origins."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from pydantic_core import to_json

from weft.context.history import HistoryLimits, Window, window
from weft.context.segment import (
    Kind,
    LeftOut,
    Segment,
    fitting_lines,
    over_budget,
    shown,
    value_of,
)
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
from weft.engine.events.kinds import BoardInput
from weft.engine.flow.lanes import lane_of
from weft.engine.state import Activation, State
from weft.engine.turn.calls import offered_tools
from weft.findings import Json
from weft.ports.model import ChatMessage, ToolSchema
from weft.spec.agents import estimate_tokens
from weft.spec.providers import MAX_ITEMS
from weft.spec.templates import Reference

_VARIABLES_HEADING: Final = "[CONTEXT VARIABLES]"
_BOARD_HEADING: Final = "[CONTEXT]"

#: The fields of an artifact that a model sees.
_SHOWN_FIELDS: Final = frozenset({"type", "payload", "produced_by", "tags", "key"})

#: The heading of a step's context where it is a message of its own.
_CONTEXT: Final = "Context:\n"


class Assembly(NamedTuple):
    """The prompt of a call, as segments and as messages, and what was left out."""

    messages: list[ChatMessage]
    pieces: list[Segment | Window]
    left_out: list[LeftOut]
    #: The encoded schemas of tools and output, which are sent with the messages.
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
        """The manifest for the journal: origins, sizes and what was left out, without texts."""
        manifest: dict[str, Any] = {
            "tokens": self._tokens,
            "counted": "estimated",
            "segments": [piece.entry for piece in self.pieces],
            "left_out": self.left_out,
        }
        return {**manifest, "edited": list(self.edited)} if self.edited else manifest

    @property
    def _tokens(self) -> int:
        """The approximate number of tokens, with the changes of hooks."""
        if not self.edited:
            return sum(piece.tokens for piece in self.pieces)
        schemas_ = (piece for piece in self.pieces if isinstance(piece, Segment) and not piece.role)
        sent = (estimate_tokens(message["content"] or "") for message in self.messages)
        return sum(piece.tokens for piece in schemas_) + sum(sent)

    def slices(self) -> Iterator[Segment]:
        """Yield everything that is sent, with its text; the conversation message by message."""
        for piece in self.pieces:
            if isinstance(piece, Segment):
                yield piece
            else:
                yield from piece.slices()


def digest_of(messages: Sequence[ChatMessage], extras: bytes) -> str:
    """Return the hash of a prompt, as the journal stores it."""
    return hashlib.sha256(to_json(messages) + extras).hexdigest()


def assemble(view: View, state: State, turn: int) -> Assembly:
    """Assemble the prompt of an agent in its current turn.

    The same view and state always give the same bytes. During a model call the values are those of
    the prompt, even if variables have changed since.
    """
    active = state.active.get(turn)
    fixed = active.shown if active else None
    values = state.values_of(turn) if fixed is None else fixed
    messages: list[ChatMessage] = []
    pieces: list[Segment | Window] = []
    left_out = list(view.left_out)
    texts: list[str] = []
    for piece in view.pieces:
        match piece:
            case HistoryLimits():
                _flush(texts, messages)
                found = _window(view, state, turn, piece)
                messages += found.messages
                _add_window(found, pieces, left_out)
                continue
            case StepMessages():
                _flush(texts, messages)
                messages += _step_messages(piece, state, turn, values, pieces, left_out)
                continue
            case BoardSlice():
                segment = _slice(piece, active, left_out)
            case VariableList():
                segment = _listing(piece, state, values, left_out)
            case Section():
                text = headed(piece.heading, _fill(piece.parts, state, values))
                segment = Segment("prompt", piece.origin, text, estimate_tokens(text))
            case _:
                segment = piece
        if segment is not None:
            texts.append(segment.text)
            pieces.append(segment)
    _flush(texts, messages)
    edits = active.edits if active else ()
    if not edits and not (state.offered and view.servers):
        pieces += view.schemas
        return Assembly(messages, pieces, left_out, view.extras, view.tools)
    tools = (*view.tools, *_offered(view, state))
    pieces += schemas(tools, view.output)
    for edit in edits:
        messages = _edited(messages, edit)
    hooks = tuple(dict.fromkeys(str(edit["by"]) for edit in edits))
    return Assembly(messages, pieces, left_out, extras(tools, view.output), tools, hooks)


def _fill(parts: Iterable[str | Reference], state: State, values: Mapping[str, Json]) -> str:
    """Return a template with the values of its references."""
    return "".join(
        part if isinstance(part, str) else shown(value_of(state, values, part.name))
        for part in parts
    )


def _add_window(found: Window, pieces: list[Segment | Window], left_out: list[LeftOut]) -> None:
    if found.cut:
        left_out.append(found.left_out)
    if found.messages:
        pieces.append(found)


def _offered(view: View, state: State) -> Iterator[ToolSchema]:
    """Yield the tools of servers as they were when the run began."""
    for name, tool in offered_tools(state, view.servers).items():
        described = str(tool.schema["description"])
        yield ToolSchema(name, described, cast("dict[str, Any]", tool.schema["parameters"]))


def _edited(messages: list[ChatMessage], edit: Mapping[str, Json]) -> list[ChatMessage]:
    """Return the messages after a hook changed the instructions, all messages, or the last one."""
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
    """Add the texts so far as one message, to keep the order."""
    if texts:
        messages.append({"role": "system", "content": "\n\n".join(texts)})
        texts.clear()


def _window(view: View, state: State, turn: int, limits: HistoryLimits) -> Window:
    thread = state.thread_of(turn)
    active = state.active.get(turn)
    # Ingredients depend on the agent's role; its own messages have its name.
    agent = active.agent if active is not None and active.step else view.agent
    if limits.kind == "history":
        return window(thread, agent, limits)
    return window(thread, agent, limits, active.call - 1 if active is not None else 0)


def _slice(piece: BoardSlice, active: Activation | None, left_out: list[LeftOut]) -> Segment | None:
    """List the provider's artifacts; those over the budget are left out from the end."""
    fetched = (active.board_input if active else None) or BoardInput()
    engines = fetched.get("engines") or []
    if active is None or active.engine_index >= len(engines):
        return None
    given = cast("Mapping[str, Any]", fetched.get("slices", [])[engines[active.engine_index]])
    lines = [_artifact_line(item) for item in given["items"]]
    ids = [item.get("id") for item in given["items"]]
    segment = _list_segment("board", piece, _BOARD_HEADING, lines, ids, left_out)
    if given.get("dropped"):
        reason = f"over the limit of {MAX_ITEMS} artifacts"
        left_out.append(
            {"kind": "board", "origin": piece.origin, "count": given["dropped"], "reason": reason}
        )
    if segment is None:
        return None
    facts = {
        "provider": given["provider"],
        "items": (segment.facts or {})["names"],
        "redacted": given["metadata"].get("redacted", []),
    }
    return replace(segment, facts=facts)


def _artifact_line(item: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in item.items() if key in _SHOWN_FIELDS and value}
    return json.dumps(shown, ensure_ascii=False)


def _listing(
    piece: VariableList, state: State, values: Mapping[str, Json], left_out: list[LeftOut]
) -> Segment | None:
    """List variables with their values; those over the budget are left out from the end."""
    lines = [
        f"{label}: {shown(value_of(state, values, name))}"
        for label, name in zip(piece.labels, piece.names, strict=True)
    ]
    return _list_segment("variables", piece, _VARIABLES_HEADING, lines, piece.names, left_out)


def _list_segment(
    kind: Kind,
    piece: BoardSlice | VariableList,
    heading: str,
    lines: Sequence[str],
    names: Sequence[Json],
    left_out: list[LeftOut],
) -> Segment | None:
    """Return the lines that fit the budget of a piece as one segment; None if none does."""
    fitting = fitting_lines(heading, lines, piece.max_tokens)
    if piece.max_tokens is not None and len(fitting) < len(lines):
        rest = {"kind": kind, "origin": piece.origin, "names": list(names[len(fitting) :])}
        left_out.append({**rest, "reason": over_budget(piece.max_tokens)})
    if not fitting:
        return None
    text = "\n".join((heading, *fitting))
    facts = {"names": list(names[: len(fitting)])}
    return Segment(kind, piece.origin, text, estimate_tokens(text), facts=facts)


# -- steps of a flow


def _step_messages(
    piece: StepMessages,
    state: State,
    turn: int,
    values: Mapping[str, Json],
    pieces: list[Segment | Window],
    left_out: list[LeftOut],
) -> list[ChatMessage]:
    """Return the messages of a step, with those of the agent's earlier steps in between."""
    active = state.active[turn]
    found = cast("Mapping[str, Any]", (active.flow and active.flow.input) or {})
    context = cast("Mapping[str, Any]", found.get("context") or {})
    if piece.coded:
        sent = cast("list[ChatMessage]", found["messages"])
    else:
        sent = [_message("user", _fill(piece.prompt, state, values))]
        if context.get("text"):
            sent.insert(0, _message("user", f"{_CONTEXT}{context['text']}"))
    pieces += _step_segments(sent, context)
    left_out += context.get("left_out") or []
    earlier = _earlier_messages(piece, state, active)
    if earlier is None:
        return sent
    _add_window(earlier, pieces, left_out)
    first = next((at for at, message in enumerate(sent) if message["role"] != "system"), len(sent))
    return [*sent[:first], *earlier.messages, *sent[first:]]


def _message(role: str, text: str) -> ChatMessage:
    return cast("ChatMessage", {"role": role, "content": text})


def _earlier_messages(piece: StepMessages, state: State, active: Activation) -> Window | None:
    """Return the messages to and from the agent in earlier steps of its path."""
    if piece.history is None or active.flow is None:
        return None
    thread = lane_of(state, active.flow.lane).threads.get(active.agent)
    return None if thread is None else window(thread, active.agent, piece.history)


def _step_segments(sent: Sequence[ChatMessage], context: Mapping[str, Any]) -> Iterator[Segment]:
    """Yield the messages as segments; the pieces of the context one by one."""
    text = context.get("text")
    for at, message in enumerate(sent):
        content = message["content"] or ""
        if text and content == f"{_CONTEXT}{text}":
            yield from map(_recorded_segment, context["segments"])
        else:
            origin = f"{message['role']}[{at}]"
            yield Segment("prompt", origin, content, estimate_tokens(content), message["role"])


def _recorded_segment(entry: Mapping[str, Any]) -> Segment:
    hits = cast("list[Mapping[str, Any]]", entry.get("hits") or [])
    items = [{"id": hit.get("source_id"), "score": hit.get("score")} for hit in hits]
    text = str(entry["text"])
    facts = cast("Mapping[str, Json] | None", {"items": items} if items else None)
    name = str(entry.get("name") or entry["kind"])
    return Segment(cast("Kind", entry["kind"]), name, text, estimate_tokens(text), "user", facts)
