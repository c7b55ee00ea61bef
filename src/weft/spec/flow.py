"""Flows: typed steps instead of a conversation."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from weft.spec.ingredients import Ingredient
from weft.spec.part import FunctionRef, Name, Part


class AgentStep(Part):
    """An agent does the step."""

    kind: Literal["agent"] = "agent"
    name: Name
    agent: Name
    context: tuple[Ingredient, ...] = ()


class FunctionStep(Part):
    """A function of the package does the step."""

    kind: Literal["function"] = "function"
    name: Name
    function: FunctionRef


Step: TypeAlias = Annotated[AgentStep | FunctionStep, Field(discriminator="kind")]


class Flow(Part):
    """The steps, in order."""

    steps: tuple[Step, ...]
