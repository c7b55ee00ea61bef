"""weft store migrate, check, backup and copy: what the operator of a store does with it."""

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import Parameter

from weft.adapters.sql.check import CheckedStore, check_store
from weft.adapters.sql.tables import VERSION
from weft.app.folders import JOURNAL, make_folder, refuse_package
from weft.app.store_admin import TargetHasRows, back_up, copy_rows, create_store, operated_store
from weft.app.stores import shown_store
from weft.cli.failure import Exit, conflict, not_found, setup, usage
from weft.cli.hosting import JournalFile, JournalLocation, Output, locate_journal, store_failure
from weft.cli.results import Result
from weft.cli.streams import clean, counted, require_file_path
from weft.errors import StoreError

T = TypeVar("T")

_Address: TypeAlias = Annotated[str, Parameter(help="A file, or a postgresql:// address.")]

_LEFT_OUT = "documents and collections are not copied: see docs/deploy.md, Backup and restore"


def migrate(*, journal: JournalFile = None, streams: Output) -> Result:
    """Create the tables of the store, or migrate those of an older Weft."""
    location = locate_journal(streams, journal)
    usual = location.workspace / JOURNAL
    if location.file == usual:
        refuse_package(location.workspace, "runs")
        make_folder(usual.parent, "runs")
    found = _do(create_store(location.address), location)
    name, version = shown_store(location.address), f"tables of version {VERSION}"
    if found is None:
        text = f"created {name} ({version})"
    elif found == VERSION:
        text = f"nothing to do: {name} ({version})"
    else:
        text = f"migrated {name} from version {found} ({version})"
    data = {"store": name, "created": found is None, "version": VERSION, "version_before": found}
    return Result(data, clean(text))


def check(*, journal: JournalFile = None, streams: Output) -> Result:
    """Read everything in the store, and print what is wrong with it."""
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> CheckedStore:
        async with operated_store(location.address) as store:
            return await check_store(store)

    found, store = _do(read(), location), shown_store(location.address)
    problems = counted(len(found.problems), "problem") if found.problems else "no problems"
    read_ = f"{counted(found.runs, 'run')}, {counted(found.events, 'event')}"
    return Result(
        {"store": store, **asdict(found)},
        "\n".join(map(clean, found.problems)),
        [clean(f"{store}: {read_}, {problems}")],
        outcome=Exit.FAILED if found.problems else Exit.DONE,
    )


def backup(
    file: Annotated[Path, Parameter(help="The file to write; it must not exist.")],
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Copy the store to a SQLite file, with the runs in progress."""
    location = locate_journal(streams, journal, must_exist=True)
    require_file_path(file, example="runs.db")
    if file.exists():
        raise conflict(f"{file} already exists", "name another file")
    size = _do(back_up(location.address, file), location)
    notes = [clean(f"  read it: weft runs list --journal {file}"), f"  {_LEFT_OUT}"]
    data = {"file": str(file), "bytes": size, "left_out": ["documents", "collections"]}
    return Result(data, clean(f"wrote {file} ({size:,} bytes)"), notes)


def copy(source: _Address, target: _Address, /, *, streams: Output) -> Result:
    """Copy a store into another one without rows, and verify the copy by hashes."""
    origin, into = locate_journal(streams, source), locate_journal(streams, target)
    if origin.is_missing:
        raise not_found(f"{source} does not exist", "name a file, or a postgresql:// address")
    if origin.address == into.address:
        raise usage("both addresses are the same", "name another target")
    try:
        rows = asyncio.run(copy_rows(origin.address, into.address))
    except TargetHasRows as error:
        hint = "name a file that does not exist, or a database without runs"
        raise conflict(str(error), hint) from error
    except StoreError as error:
        raise setup(str(error), "check both: weft store check --journal ADDRESS") from error
    total = counted(sum(rows.values()), "row")
    shown = clean(f"copied {total} to {shown_store(target)}; the hashes of all tables are equal")
    table = [(name, str(count)) for name, count in rows.items()]
    data = {
        "target": shown_store(target), "rows": rows, "left_out": ["documents", "collections"]
    }  # fmt: skip
    text = streams.table(table, head=("TABLE", "ROWS"))
    return Result(data, text, [shown, f"  {_LEFT_OUT}"])


def _do(work: Coroutine[Any, Any, T], location: JournalLocation) -> T:
    try:
        return asyncio.run(work)
    except StoreError as error:
        raise store_failure(error, location) from error
