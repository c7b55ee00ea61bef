"""Ingredients: the declared parts of what an agent sees."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part, Text


class VariablesIngredient(Part):
    """The variables exposed to the agent, or some of them."""

    kind: Literal["variables"] = "variables"
    names: tuple[Name, ...] = Field(default=(), description="Which ones; empty means all exposed.")


class HistoryIngredient(Part):
    """The conversation so far."""

    kind: Literal["history"] = "history"
    max_messages: int | None = Field(default=None, ge=1, description="Keep only the newest ones.")


class LiteralIngredient(Part):
    """A fixed text."""

    kind: Literal["literal"] = "literal"
    text: Text


Ingredient: TypeAlias = Annotated[
    VariablesIngredient | HistoryIngredient | LiteralIngredient, Field(discriminator="kind")
]
