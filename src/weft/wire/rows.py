"""Runs, open requests and artifacts as JSON, without the events of the runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from weft.context.slices import Envelope
from weft.engine.rows import RequestRow, RunRow
from weft.ports.board import Consumption, StoredArtifact
from weft.runtime.board.reading import envelope
from weft.spec.part import JsonMap
from weft.spec.providers import milliseconds

#: The schemas of answers, by request.
Schemas: TypeAlias = Mapping[str, JsonMap | None]
_NONE: Final[Schemas] = {}


def run_data(
    row: RunRow, requests: Sequence[RequestRow], schemas: Schemas = _NONE
) -> dict[str, Any]:
    """Return a run with its open requests.

    A sum that lacks a part is null: the cost where a call has no known price, the tokens where a
    call was not counted.
    """
    data = {**row._asdict(), "requests": [request_data(request, schemas) for request in requests]}
    del data["batch"]  # the store's own
    unknown = ("cost_usd",) if row.unpriced else ()
    uncounted = ("input_tokens", "output_tokens") if row.uncounted else ()
    return {**data, **dict.fromkeys((*unknown, *uncounted))}


def request_data(request: RequestRow, schemas: Schemas = _NONE) -> dict[str, Any]:
    """Return an open request: who asks whom, what is shown, until when, and what is an answer.

    The schema of answers is null where any answer is taken.
    """
    return {**request._asdict(), "response_schema": schemas.get(request.id)}


def runs_data(
    rows: Iterable[RunRow], requests: Iterable[RequestRow], schemas: Schemas = _NONE
) -> list[dict[str, Any]]:
    """Return a page of runs, each with its own of all open requests."""
    of_run: dict[str, list[RequestRow]] = {}
    for request in requests:
        of_run.setdefault(request.run, []).append(request)
    return [run_data(row, of_run.get(row.run, ()), schemas) for row in rows]


def artifact_data(artifact: Envelope) -> dict[str, Any]:
    """Return an artifact; times are milliseconds, as everywhere."""
    return {
        "id": artifact.id,
        "type": artifact.type,
        "payload": artifact.payload,
        "produced_by": artifact.produced_by,
        "correlation_id": artifact.correlation_id,
        "partition_key": artifact.partition_key,
        "tags": list(artifact.tags),
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
