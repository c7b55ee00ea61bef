"""Artifacts of boards as JSON, for operators: end users see nothing of them."""

from collections.abc import Iterable
from typing import Any

from weft.context.slices import Envelope
from weft.ports.board import Consumption, StoredArtifact
from weft.runtime.board.reading import envelope
from weft.spec.providers import milliseconds


def artifact_data(it: Envelope) -> dict[str, Any]:
    """Return an artifact; times are milliseconds, as everywhere."""
    return {
        "id": it.id,
        "type": it.type,
        "payload": it.payload,
        "produced_by": it.produced_by,
        "correlation_id": it.correlation_id,
        "partition_key": it.partition_key,
        "tags": list(it.tags),
        "created_at": milliseconds(it.created_at),
        "version": it.version,
    }


def whole_artifact_data(found: StoredArtifact, consumed: Iterable[Consumption]) -> dict[str, Any]:
    """Return an artifact with who may see it, where it stands, and whom it has woken."""
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
        "consumed": [it._asdict() for it in consumed],
    }
