"""Variables: every value an agent may see, with its type, its source and its rights."""

from pydantic import Field

from weft.spec.part import Name, Part
from weft.spec.sources import Source
from weft.spec.type_field import TypeField


class Variable(Part):
    """One declared value of the shared context."""

    type: TypeField
    description: str = ""
    source: Source
    readers: tuple[Name, ...] | None = Field(
        default=None, description="Agents that may see it; null means every agent."
    )
    writers: tuple[Name, ...] | None = Field(
        default=None,
        description="Agents and tools that may set it besides its triggers; null means all tools.",
    )
    routing: bool | None = Field(
        default=None,
        description="May be used in handoff conditions; null: environment and derived ones may.",
    )
    secret: bool = Field(
        default=False, description="A reference resolved by adapters; never shown or stored."
    )
