"""What `weft doctor` finds in the file where runs are kept."""

from shlex import quote

from weft.adapters.sqlite.errors import on_read_only_disk
from weft.adapters.sqlite.health import Health, examine
from weft.app.folders import LOCAL
from weft.cli.doctor import Diagnosis
from weft.cli.hosting import JournalLocation, is_stopped
from weft.cli.text import counted
from weft.errors import StoreError


def journal_check(location: JournalLocation) -> Diagnosis:
    """Read everything that is kept, and name the runs that no process works on."""
    file = location.file
    blocked = location.blocked
    if blocked:
        return Diagnosis("fail", "journal", blocked, _away(location))
    if not file.exists():
        return Diagnosis("ok", "journal", f"no run was kept in {file} so far")
    try:
        found = examine(file)
    except StoreError as error:
        return Diagnosis("fail", "journal", str(error), _remedy(error, location))
    return _sound(found, location)


def _sound(found: Health, location: JournalLocation) -> Diagnosis:
    fact = f"{location.file}: {counted(found.runs, 'run')}, {counted(found.events, 'event')}"
    ours = [it for it in found.unfinished if (it.app, it.user) == (LOCAL.app, LOCAL.user)]
    still = [it.run for it in ours if is_stopped(it)]
    if not still:
        return Diagnosis("ok", "journal", fact)
    fact += f", {counted(len(still), 'run')} that no process works on"
    which = still[0] if len(still) == 1 else "--all"
    return Diagnosis("warn", "journal", fact, f"weft runs resume {which}{location.options}")


def _remedy(error: StoreError, location: JournalLocation) -> str:
    if error.retryable:
        return f"wait a moment, then look again: weft doctor{location.options}"
    if on_read_only_disk(location.file):  # where nothing can be moved either
        return "copy it to where you may write, or keep runs elsewhere: --journal FILE"
    return _away(location)


def _away(location: JournalLocation) -> str:
    """Return the command that lets one begin anew without losing what can still be saved."""
    # The whole folder: SQLite keeps what was written last in a second file beside the first.
    path = quote(str(location.file.parent if location.journal is None else location.file))
    return f"mv {path} {path}.damaged, or keep runs elsewhere: --journal FILE"
