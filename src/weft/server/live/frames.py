"""What is sent to viewers: frames as JSON text, each made once for all of an audience."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from weft.context.audience import Audience
from weft.engine.events import KIND_NAMES, Event
from weft.ports.live import Delta, ModelRetry, TextDelta, ToolProgress
from weft.runtime.workflow import Workflow
from weft.wire.events import VERSION, event_bytes, user_event_bytes
from weft.wire.findings import Problem, problem_data


class Frame(NamedTuple):
    """One frame; a stream that is resumed after it has everything up to `seq`, unless that is 0.

    The changes of a board have a `cursor` instead.
    """

    kind: str
    data: bytes
    seq: int = 0
    cursor: str = ""


def event_frame(
    event: Event, run: str, workflow: Workflow, audience: Audience | None
) -> Frame | None:
    """Return the frame of an event; None if it is not for the audience. None: developers."""
    if audience is None:
        data = event_bytes(event, run, workflow)
    else:
        data = user_event_bytes(event, run, workflow, audience)
    return None if data is None else Frame(KIND_NAMES[type(event.data)], data, event.seq)


_DELTA_KINDS: Final[Mapping[type[Delta], str]] = {
    TextDelta: "delta",
    ModelRetry: "retry",
    ToolProgress: "progress",
}


def delta_frame(delta: Delta, turn: int) -> Frame:
    """Return the frame of streamed text, a repeated model call or the progress of a tool."""
    data: dict[str, object] = {"call": delta.call, "text": delta.text}
    if isinstance(delta, TextDelta):
        data["offset"] = delta.offset
    elif isinstance(delta, ToolProgress):
        data |= {"tool": delta.tool, "share": delta.share}
    kind = _DELTA_KINDS[type(delta)]
    found = {"v": VERSION, "run": delta.run, "turn": turn, "kind": kind, "data": data}
    return Frame(kind, to_json(found, inf_nan_mode="null"))


def control_frame(kind: str, after: int = 0, /, **fields: object) -> Frame:
    """Return a frame about the delivery itself: its fields stand beside its kind.

    `after` is the event after which a stream continues.
    """
    return Frame(kind, to_json({"v": VERSION, "kind": kind, **fields}), after)


def snapshot_needed(run: str, seq: int) -> Frame:
    """Return the frame that says: events up to `seq` are not sent, read the state instead."""
    return control_frame("snapshot_needed", seq, run=run, seq=seq)


def ack_frame(id_: str | None, problem: Problem | None, **result: Any) -> Frame:  # noqa: ANN401 - JSON
    """Return the answer to a command."""
    if problem is None:
        return control_frame("ack", id=id_, ok=True, **result)
    return control_frame("ack", id=id_, ok=False, problem=problem_data(problem))


PING: Final = control_frame("ping")


def joined(frames: list[Frame]) -> str:
    """Return frames as one message of a socket."""
    return (b"[" + b",".join([frame.data for frame in frames]) + b"]").decode()


def as_sse(frame: Frame) -> bytes:
    """Return a frame as one event of a server-sent stream."""
    place = frame.cursor or frame.seq
    head = f"id: {place}\n" if place else ""
    return f"{head}event: {frame.kind}\ndata: ".encode() + frame.data + b"\n\n"
