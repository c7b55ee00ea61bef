"""Ingredients: the declared parts of what an agent sees, and how large a text is to a model."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part, Text

#: Characters that make one token, roughly, in any language; used where nobody counts exactly.
CHARACTERS_PER_TOKEN: Final = 4


class VariablesIngredient(Part):
    """The variables exposed to the agent, or some of them."""

    kind: Literal["variables"] = "variables"
    names: tuple[Name, ...] = Field(default=(), description="Which ones; empty means all exposed.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="What does not fit is left out, from the end of the list."
    )


class HistoryIngredient(Part):
    """The conversation so far."""

    kind: Literal["history"] = "history"
    max_messages: int | None = Field(default=None, ge=1, description="Keep only the newest ones.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="Keep only the newest that fit; null means 16,000."
    )


class LiteralIngredient(Part):
    """A fixed text."""

    kind: Literal["literal"] = "literal"
    text: Text
    max_tokens: int | None = Field(
        default=None, ge=1, description="A longer text is refused when the package is checked."
    )


class BoardIngredient(Part):
    """What the provider of an agent of a board gives it."""

    kind: Literal["board"] = "board"
    max_tokens: int | None = Field(
        default=None, ge=1, description="What does not fit is left out, from the end."
    )


Ingredient: TypeAlias = Annotated[
    VariablesIngredient | HistoryIngredient | LiteralIngredient | BoardIngredient,
    Field(discriminator="kind"),
]


def estimate(text: str) -> int:
    """Return about how many tokens a text takes."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
