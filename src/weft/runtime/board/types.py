"""The types of a board: what their payloads must be like."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.errors import UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.runtime.tools.forms import Validator, first_error, validator_for
from weft.spec.board import TICK, Board
from weft.spec.type_meaning import json_schema
from weft.spec.types import Ref
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """The types that may be published, by name, as JSON Schemas."""

    schemas: Mapping[str, dict[str, Any]]
    validators: Mapping[str, Validator]

    def validation_error(self, type_: str, payload: Json) -> str | None:
        """Say what does not fit in a payload, and where, or None."""
        return first_error(self.validators[type_](payload))

    def require(self, type_: str) -> None:
        """Raise UsageError if there is no such type."""
        if type_ not in self.schemas:
            near = nearest(type_, self.schemas)
            known = ", ".join(sorted(self.schemas)) or "none"
            hint = f"did you mean {near}?" if near else f"the board has: {known}"
            raise UsageError(f"the board has no artifacts of the type {type_}", hint=hint)


NO_TYPES: Final = ArtifactTypes({}, {})


def artifact_types(spec: WorkflowSpec, board: Board) -> ArtifactTypes:
    """Work out the types of a board, once for all runs."""
    models = {it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models}
    schemas: dict[str, dict[str, Any]] = {}
    for it in board.artifacts:
        if isinstance(it, str):
            schemas[it] = json_schema(Ref(it), models)
        else:
            schemas[it.name] = dict(it.schema_)
    schemas.setdefault(TICK, {"type": "object"})
    return ArtifactTypes(schemas, {name: validator_for(it) for name, it in schemas.items()})
