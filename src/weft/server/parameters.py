"""Parameters that several routes have: lists by page, ids in paths, and repeated requests."""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError, from_json, to_json

from weft.errors import UsageError
from weft.findings import Json
from weft.server.records import RecordLog

T = TypeVar("T")

#: Nothing that an id cannot hold: no database takes a NUL.
PRINTABLE: Final = r"^[^\x00-\x1f]+$"

RunPath: TypeAlias = Annotated[str, Path(min_length=1, max_length=200, pattern=PRINTABLE)]
IdPath: TypeAlias = Annotated[str, Path(min_length=1, max_length=300, pattern=PRINTABLE)]
NameFilter: TypeAlias = Annotated[
    str | None, Query(min_length=1, max_length=200, pattern=PRINTABLE)
]
#: Milliseconds since 1970, and the number of an event: as large as a database can hold.
Milliseconds: TypeAlias = Annotated[int, Query(ge=0, le=2**53)]
EventNumber: TypeAlias = Annotated[int, Query(ge=0, le=2**53)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=200)]
Cursor: TypeAlias = Annotated[str | None, Query(max_length=800, pattern=PRINTABLE)]
RequestKey: TypeAlias = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A name for this request: sent again with it, it finds what it did before.",
    ),
]


#: How much a problem shows of names that a caller has made up.
_SHOWN: Final = 200


class Body(BaseModel):
    """A body in JSON; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _name_known(cls, data: object) -> object:
        """Refuse unknown fields with the known ones, which pydantic does not name."""
        if isinstance(data, dict):
            names = cast("dict[object, object]", data)
            unknown = [str(name) for name in names if name not in cls.model_fields]
            if unknown:
                text = "unknown fields: {unknown}; known: {known}"
                given = ", ".join(unknown)[:_SHOWN].encode("utf-8", "backslashreplace").decode()
                context = {"unknown": given, "known": ", ".join(cls.model_fields)}
                raise PydanticCustomError("unknown_fields", text, context)
        return cast("object", data)


def cursor_of(*parts: str | int) -> str:
    """Return where a list continues, as a text that clients only pass on."""
    return base64.urlsafe_b64encode(to_json(parts)).decode().rstrip("=")


def parts_of(cursor: str, *kinds: type) -> tuple[str | int, ...]:
    """Return what a cursor was made of; raises UsageError for one that was not made here."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        parts: list[str | int] = from_json(raw)
    except ValueError:
        parts = []
    if [type(part) for part in parts] != list(kinds):
        raise UsageError(f"invalid cursor {cursor!r}", hint="use `next` of the page before")
    return tuple(parts)


def key_of(cursor: str | None) -> str:
    """Return the key that a cursor was made of, empty without one; raises UsageError."""
    return "" if cursor is None else str(parts_of(cursor, str)[0])


def page(
    found: Sequence[T], limit: int, place: Callable[[T], str], show: Callable[[T], object]
) -> dict[str, object]:
    """Return a page of what was read with one more than the limit; `place` is the cursor of one."""
    shown = found[:limit]
    following = place(shown[-1]) if len(found) > limit else None
    return {"items": [show(each) for each in shown], "next": following}


async def log_page(
    logs: RecordLog,
    app: str,
    log: str,
    cursor: str | None,
    limit: int,
    show: Callable[[Mapping[str, Json]], object] = dict,
) -> dict[str, object]:
    """Return a page of a log, newest first."""
    found = await logs.page(app, log, cursor=key_of(cursor), limit=limit + 1)
    return page(found, limit, lambda entry: cursor_of(entry.key), lambda entry: show(entry.value))
