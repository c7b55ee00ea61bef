"""The base of everything an author can declare."""

import re
from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from weft import ids

__all__ = [
    "READ_NAMES",
    "TEXT_OR_OBJECT",
    "YEAR",
    "Addressee",
    "FunctionRef",
    "JsonMap",
    "JsonValue",
    "Name",
    "Names",
    "Nearness",
    "ObjectRef",
    "Part",
    "Seconds",
    "Text",
    "UrlPath",
    "Words",
    "name_list",
]

#: A name as an author writes it; the checker reports names that are not well formed.
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


T = TypeVar("T")


def name_list(names: Iterable[T]) -> tuple[T, ...]:
    """Return names as a tuple, those of a set in sorted order.

    Raises ValueError for a plain text, whose characters would be read as names.
    """
    if isinstance(names, str):
        raise ValueError(f'expected a list of names, got the text "{names}"; write ["{names}"]')  # noqa: TRY004 - refused like any other value
    return tuple(sorted(names, key=str)) if isinstance(names, set | frozenset) else tuple(names)


def _read_names(value: object) -> object:
    try:
        is_list = isinstance(value, str | list | set | frozenset)
        return name_list(cast("Iterable[str]", value)) if is_list else value
    except ValueError as error:
        raise PydanticCustomError("tuple_type", "{message}", {"message": str(error)}) from error


#: Several names; a set may be given in code, since its order does not change the digest.
READ_NAMES: Final = BeforeValidator(_read_names)
Names: TypeAlias = Annotated[tuple[Name, ...], READ_NAMES]

#: Prose for people or models; bounded so that one value cannot fill the memory.
Text: TypeAlias = Annotated[str, StringConstraints(max_length=200_000)]

#: Text that must not be empty; an optional one is left out instead.
Words: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]

#: How similar two texts must be in meaning: 1 for the same, 0 for nothing in common.
Nearness: TypeAlias = Annotated[float, Field(ge=0, le=1)]

#: The longest time that can be declared; a larger number is probably in another unit.
YEAR: Final = 31_536_000
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=YEAR, allow_inf_nan=False)]

_URL_PATH: Final = re.compile(r"/?[A-Za-z0-9_~.-]+(/[A-Za-z0-9_~.-]+)*")


def _check_url_path(path: str) -> str:
    if not _URL_PATH.fullmatch(path) or {".", ".."}.intersection(path.split("/")):
        hint = "write words of letters, digits, - and _ with / between them: orders/new"
        raise PydanticCustomError("url_path", "the path is not valid", {"hint": hint})
    return path


#: The path of a URL, without parameters.
UrlPath: TypeAlias = Annotated[Name, AfterValidator(_check_url_path)]

#: A function of the package, `module:function`, relative to the package folder.
FunctionRef: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^{ids.FUNCTION_NAME}$", max_length=400)
]

#: An object in code: `module:name` in the package or installed, or `local:NAME`, which exists only
#: in the program that defines the workflow.
ObjectRef: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^{ids.OBJECT_NAME}$", max_length=400)
]

_ADDRESSEE: Final = r"^(user|role|group):\S(.*\S)?$"


def _check_addressee(value: object) -> object:
    """Refuse an invalid addressee with a clear message; the pattern below is for editors."""
    if isinstance(value, str) and not re.fullmatch(_ADDRESSEE, value):
        raise PydanticCustomError(
            "addressee", "not a valid addressee: write user:NAME, role:NAME or group:NAME"
        )
    return value


#: Who is asked: a person, or those with a role or in a group.
Addressee: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=_ADDRESSEE, max_length=200),
    BeforeValidator(_check_addressee),
]

JsonMap: TypeAlias = dict[str, JsonValue]


class Part(BaseModel):
    """A declaration: immutable, with unknown fields refused."""

    # Validators are built on first use, so that importing the spec stays fast.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


def _written_form(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    return "object" if isinstance(value, dict | Part) else None


#: Chooses between two members of a union by the form of the value: "text" or "object". Validation
#: errors then concern only the member that the author wrote.
TEXT_OR_OBJECT: Final = Discriminator(
    _written_form,
    custom_error_type="text_or_object",
    custom_error_message="expected text or an object",
)
