"""weft keys create, list, rotate and delete: the API keys of a server, written to its store."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from cyclopts import Parameter

from weft.adapters.system_clock import SystemClock
from weft.app.folders import LOCAL
from weft.cli.commands.runs import milliseconds
from weft.cli.failure import not_found
from weft.cli.hosting import JournalFile, hosted, locate_journal, require_server
from weft.cli.options import Output, command
from weft.cli.results import Result
from weft.cli.scope import command_scope, command_user, scope_options
from weft.cli.streams import Streams, at_time, clean
from weft.errors import AccessDenied

if TYPE_CHECKING:
    from weft.server.auth.keys import ApiKeys, KeyInfo, NewKey

T = TypeVar("T")

_Names: TypeAlias = Annotated[tuple[str, ...], Parameter(consume_multiple=False)]
_KeyId: TypeAlias = Annotated[str, Parameter(help="The id of a key, as `weft keys list` prints.")]


@command
def create(
    *,
    role: _Names = (),
    group: _Names = (),
    name: str = "",
    expires: str | None = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Make an API key for --user of --app, and print it; it cannot be printed again.

    A key has at least one role of the server: end_user, developer, operator or administrator.
    Other names are roles to which questions can be addressed.

    Options:
      --role NAME     A role; repeatable.
      --group NAME    A group to which questions can be addressed; repeatable.
      --name TEXT     What the key is for, as a note.
      --expires SPAN  How long the key is valid: 12h, 90d; default: until it is deleted.

    Examples:
      weft keys create --role administrator
      weft keys create --app shop --user ada --role end_user --name 'web page' --expires 90d
    """
    ends = None if expires is None else _now() + milliseconds(expires)

    async def make(keys: "ApiKeys") -> "tuple[NewKey, bool]":
        # Deferred: only the server needs it.
        from weft.server.auth.users import APP_KIND  # noqa: PLC0415
        from weft.server.records import SERVER  # noqa: PLC0415

        user = command_user()
        made = await keys.create(app, user, role, groups=group, name=name, expires_at=ends)
        # Servers know the tenants that are recorded.
        is_new = app != LOCAL.app and await keys.records.add_record(SERVER, APP_KIND, app, {})
        return made, is_new

    app = command_scope().app
    made, is_new = _with_keys(make, journal, streams)
    return _shown(made, "made", *([clean(f"added the tenant {app}")] if is_new else []))


@command
def list_keys(*, all_apps: bool = False, journal: JournalFile = None, streams: Output) -> Result:
    """List the API keys of a tenant; their texts are not stored.

    Options:
      --all-apps  The keys of all tenants.

    Examples:
      weft keys list
      weft keys list --app shop --json
    """
    app = None if all_apps else command_scope().app

    found = _with_keys(lambda keys: keys.of_app(app), journal, streams)
    rows = [
        (
            key.id,
            f"{key.app}/{key.user}",
            ", ".join((*key.roles, *(f"group {group}" for group in key.groups))),
            _expiry(key),
            "never used" if key.last_used_at is None else f"used {at_time(key.last_used_at)}",
            key.name,
        )
        for key in found
    ]
    whose = "no tenant has" if all_apps else f"the tenant {app} has no"
    make = f"make one: weft keys create{scope_options()} --role developer"
    notes = [] if found else [clean(f"{whose} keys; {make}")]
    table = streams.table(rows, head=("ID", "USER", "ROLES", "EXPIRES", "USED", "NAME"))
    return Result({"keys": [asdict(key) for key in found]}, table, notes)


@command
def rotate(
    key: _KeyId, /, *, grace: str = "24h", journal: JournalFile = None, streams: Output
) -> Result:
    """Give a key a new secret, and print it.

    Options:
      --grace SPAN  How long the old secret remains valid: 0s, 1h; default: 24h.

    Examples:
      weft keys rotate 3f9a01c2d4e5
      weft keys rotate 3f9a01c2d4e5 --grace 0s
    """
    span = milliseconds(grace)
    app = command_scope().app

    note = (
        f"the old secret is valid for {grace}" if span else "the old secret is not valid any more"
    )
    made = _with_keys(lambda keys: keys.rotate(app, key, grace=span), journal, streams)
    return _shown(made, "rotated", note)


@command
def delete(key: _KeyId, /, *, journal: JournalFile = None, streams: Output) -> Result:
    """Delete a key: servers refuse it after at most five seconds.

    Examples:
      weft keys delete 3f9a01c2d4e5
    """
    app = command_scope().app

    _with_keys(lambda keys: keys.delete(app, key), journal, streams)
    return Result({"deleted": key}, clean(f"deleted key {key}"))


def _with_keys(
    work: "Callable[[ApiKeys], Awaitable[T]]", journal: str | None, streams: Streams
) -> T:
    """Perform work on the keys in the store."""
    require_server()
    # Deferred: only the server needs it.
    from weft.server.auth.keys import ApiKeys  # noqa: PLC0415

    location = locate_journal(streams, journal)

    async def perform() -> T:
        async with hosted(location, reading=True) as host:
            try:
                return await work(ApiKeys(host.records, SystemClock()))
            except AccessDenied as error:
                raise not_found(
                    f"{error} of the tenant {command_scope().app}",
                    f"list the keys: weft keys list{scope_options()}",
                    "those of all tenants: weft keys list --all-apps",
                ) from error

    return asyncio.run(perform())


def _shown(key: "NewKey", what: str, *notes: str) -> Result:
    """Return the text of a key, alone on stdout."""
    said = f"{what} key {key.id}; its text is printed only now"
    return Result({"id": key.id, "key": key.text}, key.text, [clean(said), *notes])


def _expiry(key: "KeyInfo") -> str:
    if key.expires_at is None:
        return "never"
    over = "expired " if key.expires_at <= _now() else ""
    return f"{over}{at_time(key.expires_at)}"


def _now() -> int:
    return time.time_ns() // 1_000_000
