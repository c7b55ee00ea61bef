"""Recorded journals: how they are written, read, and what is expected of folding them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from pydantic_core import from_json, to_json

from weft.engine.board.state import BoardState
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import KIND_NAMES, Event
from weft.engine.events.codec import decode, encode
from weft.engine.flow.state import FlowState
from weft.engine.reduce import fold, reduce
from weft.engine.state import State


def lines(events: Sequence[Event]) -> bytes:
    """Return events as JSON, one a line."""
    return b"".join(
        to_json(event._asdict() | {"data": None})[: -len(',"data":null}')]
        + b',"kind":'
        + to_json(KIND_NAMES[type(event.data)])
        + b',"data":'
        + encode(event.data)
        + b"}\n"
        for event in events
    )


def read(raw: bytes) -> list[Event]:
    """Return the events of a recorded journal."""
    found: list[dict[str, Any]] = [from_json(line) for line in raw.splitlines()]
    return [
        Event(
            seq=event["seq"],
            at=event["at"],
            actor=event["actor"],
            cause=event["cause"],
            turn=event["turn"],
            data=decode(event["kind"], to_json(event["data"])),
        )
        for event in found
    ]


def expectation(compiled: CompiledWorkflow, run: str, events: Sequence[Event]) -> dict[str, Any]:
    """Return what folding gives: the last state, and the status after every event."""
    state = State(run)
    statuses: list[str] = []
    for event in events:
        state, _ = reduce(compiled, state, event)
        statuses.append(state.status)
    return {"state": described(fold(compiled, run, events)), "statuses": statuses}


def described(state: State) -> dict[str, Any]:
    """Return a state as JSON."""
    fields = dict(vars(state))
    fields["messages"] = [message._asdict() for message in state.messages]
    fields["threads"] = {
        turn: [item._asdict() for item in thread] for turn, thread in state.threads.items()
    }
    fields["spent"] = state.spent._asdict()
    fields["message_ids"] = list(state.message_ids)
    fields["timers"] = dict(state.timers)
    fields["active"] = {
        number: {**asdict(value), "missing": sorted(value.missing)}
        for number, value in state.active.items()
    }
    fields["board"] = None if state.board is None else board_described(state.board)
    fields["flow"] = None if state.flow is None else flow_described(state.flow)
    return from_json(to_json(fields))


def board_described(board: BoardState) -> dict[str, Any]:
    """Return a board as JSON."""
    windows = [
        [
            name,
            key,
            {type_: list(found) for type_, found in window.waiting.items()},
            window.timer,
            window.seen,
        ]
        for name, open_windows in board.joins.items()
        for key, window in open_windows.windows.items()
    ]
    return {
        **vars(board),
        "queues": {name: list(queue) for name, queue in board.queues.items()},
        "joins": windows,
        "batches": {
            name: [list(batch.groups), batch.timer] for name, batch in board.batches.items()
        },
        "delayed": dict(board.delayed),
        "deferred": dict(board.deferred),
        "ids": list(board.ids),
    }


def flow_described(flow: FlowState) -> dict[str, Any]:
    """Return where a flow is as JSON."""
    lanes = {
        key: {
            **asdict(replace(lane, threads={})),
            "threads": {
                name: [one._asdict() for one in thread] for name, thread in lane.threads.items()
            },
        }
        for key, lane in flow.lanes.items()
    }
    forks = {key: asdict(fork) for key, fork in flow.forks.items()}
    return {
        "lanes": lanes,
        "forks": forks,
        "waits": {k: asdict(wait) for k, wait in flow.waits.items()},
    }


def only(found: Any, recorded: Any) -> Any:
    """Return of what is found now what there was when it was recorded: fields may be added."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return {key: only(found[key], value) for key, value in recorded.items() if key in found}
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        return [only(*pair) for pair in zip(found, recorded, strict=True)]
    return found
