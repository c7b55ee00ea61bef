"""From what a person types to the run meant: its identity, a part of it, or `last`."""

from typing import Final

from weft.app.hosts import LOCAL
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.hosting import Place
from weft.engine.rows import RequestRow, RunRow
from weft.ports.scope import Scope
from weft.runtime.host import Host

#: How much of an identity is shown in a list: the end, since beginnings are those of the time.
SHORT: Final = 8

#: How many runs are looked at when a part of an identity is given.
_PAGE: Final = 500

#: No more than this many candidates are named.
_MOST: Final = 4


def short(run: str) -> str:
    """Return the part of an identity that tells it from others."""
    return run[-SHORT:]


async def find_run(host: Host, typed: str, scope: Scope = LOCAL) -> RunRow:
    """Return the run a person means."""
    name = typed.strip().lower()
    if not name:
        raise usage("the name of the run is empty", "name a run, or `last`")
    if name == "last":
        newest = await host.runs(scope=scope, limit=1)
        if not newest:
            raise not_found("there is no run yet", "start one: weft run NAME hello")
        return newest[0]
    found = await _matching(host, name, scope)
    if not found:
        raise not_found(f'there is no run "{typed}"', "see what there is: weft runs list")
    if len(found) > 1:
        named = ", ".join(row.run for row in found[:_MOST])
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise usage(
            f'"{typed}" could be one of {len(found)} runs', f"write more of it: {named}{more}"
        )
    return found[0]


async def find_request(host: Host, row: RunRow, typed: str | None, place: Place) -> RequestRow:
    """Return the open question of a run that a person means: by its end, or the only one."""
    asked = await host.requests(scope=LOCAL, run=row.run)
    if not asked:
        raise _asks_nothing(row, place)
    matching = [it for it in asked if typed is None or it.id.endswith(typed)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(it.id for it in asked)
    if matching:
        raise usage(f"run {row.run} asks {len(matching)} questions", f"name one of: {names}")
    raise not_found(f'run {row.run} has no open question "{typed}"', f"it asks: {names}")


def _asks_nothing(row: RunRow, place: Place) -> CommandFailed:
    if row.status == "ended":
        look = f"look at it: weft inspect {row.run}{place.options}"
        return usage(f"run {row.run} has ended, and asks nothing", look)
    return usage(
        f"run {row.run} has something to do, and asks nothing at present",
        f"if no process works on it, take it up: weft runs resume {row.run}{place.options}",
        f"else wait until it asks: weft runs tail {row.run}{place.options}",
    )


async def _matching(host: Host, name: str, scope: Scope) -> list[RunRow]:
    found: list[RunRow] = []
    before: str | None = None
    while page := await host.runs(scope=scope, before=before, limit=_PAGE):
        for row in page:
            if row.run.lower() == name:
                return [row]
            if row.run.lower().startswith(name) or row.run.lower().endswith(name):
                found.append(row)
        before = page[-1].run
    return found
