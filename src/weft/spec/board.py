"""The board: typed artifacts, and the subscriptions by which they wake agents."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part


class EachArtifact(Part):
    """Every artifact of one type wakes the agent."""

    on: Literal["each"] = "each"
    agent: Name
    artifact: Name = Field(description="Model of the artifact.")


class AllArtifacts(Part):
    """The agent wakes when one artifact of every type is there."""

    on: Literal["all"] = "all"
    agent: Name
    artifacts: tuple[Name, ...] = Field(min_length=2, description="Models of the artifacts.")


Subscription: TypeAlias = Annotated[EachArtifact | AllArtifacts, Field(discriminator="on")]


class Board(Part):
    """Which artifacts there are and whom they wake."""

    artifacts: tuple[Name, ...] = Field(description="Models that may be published.")
    subscriptions: tuple[Subscription, ...] = ()
