"""weft doctor: whether everything Weft needs is here, and the command that fixes what is not."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.cli.doctor import Diagnosis
from weft.cli.doctor.checks import diagnose
from weft.cli.failure import Exit
from weft.cli.formats.documents import document
from weft.cli.streams import Streams


def doctor(
    *,
    journal: Annotated[
        Path | None,
        Parameter(metavar="FILE", help="Look at the runs in this file; else in .weft/journal.db."),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Look at the setup and name the command that fixes it."""
    found = list(diagnose(streams.settings.workspace, journal))
    failed = any(it.state == "fail" for it in found)
    if streams.settings.json:
        streams.result(document({"ok": not failed, "checks": [_data(it) for it in found]}))
    else:
        wanted = [it for it in found if it.state != "ok" or not streams.settings.quiet]
        streams.rows([(it.state, it.subject, it.fact, it.remedy) for it in wanted])
    return Exit.SETUP if failed else Exit.DONE


def _data(it: Diagnosis) -> dict[str, str]:
    return {"state": it.state, "subject": it.subject, "fact": it.fact, "remedy": it.remedy}
