"""Runs, open requests and artifacts as JSON, without the events of the runs."""

from collections.abc import Iterable
from typing import Any, Final

from weft.context.slices import Envelope
from weft.engine.rows import OpenRequest, RunRow
from weft.engine.state import State
from weft.engine.timers import NEVER
from weft.inspect.variables import HIDDEN_VALUE, is_secret
from weft.ports.board import Consumption, StoredArtifact
from weft.ports.scope import Scope
from weft.runtime.board.reading import envelope
from weft.runtime.workflow import Workflow
from weft.spec.providers import milliseconds

#: What end users see of a run and of its open requests; operators see all. A new field of a row is
#: hidden until it is listed here.
USER_RUN_FIELDS: Final = frozenset(
    {"run", "app", "user", "workflow", "digest", "status", "seq", "started_at", "changed_at"}
    | {"preview", "outcome", "parent", "name", "due_at"}
)
USER_REQUEST_FIELDS: Final = frozenset(
    {"id", "run", "app", "user", "kind", "agent", "tool", "payload", "opened_at", "expires_at"}
    | {"component", "mode", "addressee", "response_schema"}
)


def run_data(row: RunRow, requests: Iterable[OpenRequest]) -> dict[str, Any]:
    """Return a run with its own of all open requests."""
    own = [request_data(request) for request in requests if request.run == row.run]
    return {**row_data(row), "requests": own}


def row_data(row: RunRow) -> dict[str, Any]:
    """Return a run without its requests.

    A sum that lacks a part is null: the cost where a call has no known price, the tokens where a
    call was not counted. So is the time when a run needs attention next if there is none.
    """
    data = row._asdict()
    del data["batch"]  # the store's own
    unknown = ("cost_usd",) if row.unpriced_calls else ()
    unmetered = ("input_tokens", "output_tokens") if row.unmetered_calls else ()
    never = ("due_at",) if row.due_at == NEVER else ()
    return {**data, **dict.fromkeys((*unknown, *unmetered, *never))}


def request_data(request: OpenRequest) -> dict[str, Any]:
    """Return an open request: who asks whom, what is shown, until when, and what is an answer.

    The schema of answers is null where any answer is taken.
    """
    return {**request._asdict(), "response_schema": request.response_schema}


def user_row_data(row: RunRow) -> dict[str, Any]:
    """Return what an end user sees of a run."""
    return {name: value for name, value in row_data(row).items() if name in USER_RUN_FIELDS}


def user_request_data(request: OpenRequest, scope: Scope) -> dict[str, Any]:
    """Return what an end user sees of an open request: its content if it is theirs to answer."""
    data = request_data(request)
    if not scope.answers(request.app, request.user, request.addressee):
        data |= {"payload": None, "response_schema": None}
    return {name: value for name, value in data.items() if name in USER_REQUEST_FIELDS}


def artifact_data(artifact: Envelope) -> dict[str, Any]:
    """Return an artifact; times are milliseconds, as everywhere."""
    return {
        **artifact.item(),
        "partition_key": artifact.partition_key,
        "created_at": milliseconds(artifact.created_at),
        "version": artifact.version,
    }


def whole_artifact_data(found: StoredArtifact, consumed: Iterable[Consumption]) -> dict[str, Any]:
    """Return an artifact with its visibility, its place in the journal, and its consumers."""
    seen = found.audience
    return {
        **artifact_data(envelope(found)),
        "visibility": {
            "policy": seen.policy,
            "names": list(seen.names),
            "visible_at": seen.visible_at,
        },
        "run": found.run,
        "seq": found.seq,
        "consumed": [consumption._asdict() for consumption in consumed],
    }


#: The fields of a state that are JSON as they are.
_PLAIN: Final = (
    "run", "seq", "status", "workflow", "digest", "app", "user", "name", "started_at", "model",
    "turns", "turn_counts", "last_agent", "outcome", "reason",
)  # fmt: skip


def state_data(state: State, workflow: Workflow) -> dict[str, Any]:
    """Return a state: its variables, without secrets; what was said; and all that is open."""
    return {
        **{name: getattr(state, name) for name in _PLAIN},
        "parent": state.forked_from,
        "variables": {
            name: HIDDEN_VALUE if is_secret(workflow, name) else value
            for name, value in state.variables.items()
        },
        "messages": [
            {"seq": said.seq, "role": said.role, "agent": said.agent, "text": said.text}
            for said in state.messages
        ],
        "active": [
            {"turn": active.number, "agent": active.agent, "stage": active.stage}
            for active in state.active.values()
        ],
        "calls": [
            {"id": call.id, "turn": call.turn, "tool": call.tool, "arguments": call.arguments}
            for call in state.calls.values()
        ],
        "requests": list(state.requests.values()),
        "timers": [{"id": timer.id, "at": timer.at} for timer in state.timers.values()],
    }
