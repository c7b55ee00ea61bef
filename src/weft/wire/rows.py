"""Runs and open requests as JSON: what is known of them without reading their events."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from weft.engine.rows import RequestRow, RunRow
from weft.spec.part import JsonMap

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
    data = {**row._asdict(), "requests": [request_data(it, schemas) for it in requests]}
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
