"""What `weft doctor` finds in the file where runs are kept."""

from shlex import quote

from weft.adapters.sqlite.errors import on_read_only_disk
from weft.adapters.sqlite.health import Health, examine
from weft.app.hosts import LOCAL
from weft.cli.doctor.checks import Diagnosis
from weft.cli.hosting import Place
from weft.cli.pages.runs import is_still
from weft.cli.text import counted
from weft.errors import StoreError


def journal_check(place: Place) -> Diagnosis:
    """Read everything that is kept, and name the runs that nobody works on."""
    file = place.file
    blocked = place.blocked
    if blocked:
        return Diagnosis("fail", "journal", blocked, _away(place))
    if not file.exists():
        return Diagnosis("ok", "journal", f"no run was kept in {file} so far")
    try:
        found = examine(file)
    except StoreError as error:
        return Diagnosis("fail", "journal", str(error), _remedy(error, place))
    return _sound(found, place)


def _sound(found: Health, place: Place) -> Diagnosis:
    fact = f"{place.file}: {counted(found.runs, 'run')}, {counted(found.events, 'event')}"
    ours = [it for it in found.unfinished if (it.app, it.user) == (LOCAL.app, LOCAL.user)]
    still = [it.run for it in ours if is_still(it)]
    if not still:
        return Diagnosis("ok", "journal", fact)
    fact += f", {counted(len(still), 'run')} that nobody seems to work on"
    return Diagnosis("warn", "journal", fact, f"weft runs resume {still[0]}{place.options}")


def _remedy(error: StoreError, place: Place) -> str:
    if error.retryable:
        return f"wait a moment, then look again: weft doctor{place.options}"
    if on_read_only_disk(place.file):  # where nothing can be moved either
        return "copy it to where you may write, or keep runs elsewhere: --journal FILE"
    return _away(place)


def _away(place: Place) -> str:
    """Return the command that lets one begin anew without losing what can still be saved."""
    # The whole folder: SQLite keeps what was written last in a second file beside the first.
    path = quote(str(place.file.parent if place.journal is None else place.file))
    return f"mv {path} {path}.damaged, or keep runs elsewhere: --journal FILE"
