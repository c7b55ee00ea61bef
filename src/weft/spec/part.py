"""The base of everything an author can declare."""

from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, StringConstraints

from weft import ids

__all__ = [
    "TEXT_OR_OBJECT",
    "FunctionRef",
    "JsonMap",
    "JsonValue",
    "Name",
    "Nearness",
    "ObjectRef",
    "Part",
    "Text",
    "Words",
]

#: A name as an author writes it; which names are well formed is the checker's matter.
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]

#: Prose for people or models; bounded so that one value cannot fill the memory.
Text: TypeAlias = Annotated[str, StringConstraints(max_length=200_000)]

#: Text that says something: where nothing is meant, the key is left out.
Words: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]

#: How near two texts must be in meaning: 1 for the same, 0 for nothing in common.
Nearness: TypeAlias = Annotated[float, Field(ge=0, le=1)]

#: A function of the package, `module:function`, relative to the package folder.
FunctionRef: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^{ids.FUNCTION_NAME}$", max_length=400)
]

#: An object in code: `module:name` in the package or installed, or `local:NAME`, which only the
#: process has that defines the workflow.
ObjectRef: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^{ids.OBJECT_NAME}$", max_length=400)
]

JsonMap: TypeAlias = dict[str, JsonValue]


class Part(BaseModel):
    """A declared thing: immutable, and strict about what it does not know."""

    # Building validators is put off until first use: importing the spec must stay cheap.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


def _written_as(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    return "object" if isinstance(value, dict | Part) else None


#: Tells the members of a union apart of which one, tagged "text", is written as a text and the
#: other, tagged "object", as an object: what is wrong is then said of the one that was meant.
TEXT_OR_OBJECT: Final = Discriminator(
    _written_as,
    custom_error_type="text_or_object",
    custom_error_message="expected text or an object",
)
