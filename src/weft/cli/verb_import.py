"""weft import: a package from a zip file, installed or updated in place."""

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from weft.cli.exits import Exit
from weft.cli.failure import not_found
from weft.cli.machine_formats import document, finding_data
from weft.cli.streams import Streams, clean
from weft.cli.wording import counted
from weft.packages.archive import Import, import_package


def import_(
    file: Annotated[Path, Parameter(help="The zip file, as weft export writes it.")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Show what would change and write nothing.")] = False,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Install or update a package from a zip file and show what changes."""
    if not file.is_file():
        raise not_found(f"there is no file {file}", "make one: weft export NAME")
    imported = import_package(file, streams.settings.workspace, dry_run=dry_run)
    if streams.settings.json:
        streams.result(_document(imported, dry_run=dry_run))
        return Exit.DONE
    if imported.diff:
        streams.result("\n".join(_painted(line, streams) for line in imported.diff.splitlines()))
    streams.note(_summary(imported, dry_run=dry_run))
    if imported.findings:
        found = counted(len(imported.findings), "warning")
        streams.note(f"It has {found}: weft check {imported.name}")
    return Exit.DONE


def _document(imported: Import, *, dry_run: bool) -> str:
    return document(
        {
            "name": imported.name,
            "folder": str(imported.folder),
            "written": not (dry_run or imported.unchanged),
            "created": imported.created,
            "added": list(imported.added),
            "changed": list(imported.changed),
            "removed": list(imported.removed),
            "diff": imported.diff,
            "old_digest": imported.old_digest,
            "new_digest": imported.new_digest,
            "findings": [finding_data(finding) for finding in imported.findings],
        }
    )


def _painted(line: str, streams: Streams) -> str:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return streams.paint(line, styles.get(line[:1], ""))


def _summary(imported: Import, *, dry_run: bool) -> str:
    if imported.unchanged:
        return f"{imported.folder} is already as in the file; nothing to do."
    counts = (
        (len(imported.added), "added"),
        (len(imported.changed), "changed"),
        (len(imported.removed), "removed"),
    )
    said = ", ".join(f"{number} {word}" for number, word in counts if number)
    return clean(f"{_DONE[dry_run, imported.created]} {imported.folder}: {said}.")


#: By whether nothing was to be written, and whether the package is new.
_DONE: Final = {
    (True, True): "Would install",
    (True, False): "Would update",
    (False, True): "Installed",
    (False, False): "Updated",
}
