"""weft export and weft import: a package as a zip file with a manifest of hashes."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Final

from cyclopts import Parameter

from weft.cli.completion import package_names
from weft.cli.failure import CommandFailed, Exit, Failure, not_found, usage
from weft.cli.formats.documents import document, failure_data
from weft.cli.paths import locate_package
from weft.cli.streams import Streams, require_file_path
from weft.cli.text import clean, counted
from weft.packages.archive.exporting import export_package
from weft.packages.archive.importing import Import, import_package
from weft.packages.workspace import is_package
from weft.wire.findings import finding_data


def export(
    name: Annotated[
        str, Parameter(help="A package by name, or its folder.", completer=package_names)
    ],
    /,
    *,
    output: Annotated[
        Path | None,
        Parameter(
            name=("--output", "-o"), metavar="FILE", help="The file to write; else NAME.zip."
        ),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Write a package to a zip file."""
    folder = locate_package(name, streams.settings.workspace)
    target = output or Path(f"{folder.resolve().name}.zip")
    require_file_path(target, example=f"{folder.resolve().name}.zip")
    if target.resolve().is_relative_to(folder.resolve()):
        elsewhere = folder.parent / target.name if folder.parts else Path("..") / target.name
        command = f"weft export {quote(name)} -o {quote(str(elsewhere))}"
        raise usage(f"{target} would lie inside the package", command)
    done = export_package(folder, target)
    manifest = done.manifest
    if streams.settings.json:
        content = {"file": str(target), "name": manifest.name, "digest": manifest.digest}
        found = [finding_data(finding) for finding in done.findings]
        streams.result(document({**content, "files": dict(manifest.files), "findings": found}))
        return Exit.DONE
    streams.result(clean(str(target)))
    streams.note(
        f"{manifest.name} with {counted(len(manifest.files), 'file')}, digest {manifest.digest}"
    )
    if done.findings:
        found = counted(len(done.findings), "warning")
        streams.note(f"It has {found}: weft check {quote(name)}")
    return Exit.DONE


def import_(
    file: Annotated[Path, Parameter(help="The zip file, as weft export writes it.")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Show what would change and write nothing.")] = False,
    force: Annotated[
        bool, Parameter(help="Replace files you have changed; the former folder is kept.")
    ] = False,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Install or update a package from a zip file and show what changes."""
    _require_zip(file)
    workspace = streams.settings.workspace
    imported = import_package(file, workspace, dry_run=dry_run, force=force)
    refusal = _refusal(imported, file) if imported.lost and not force else None
    if streams.settings.json:
        streams.result(_document(imported, refusal, dry_run=dry_run))
        return refusal.exit if refusal else Exit.DONE
    if imported.created:
        streams.result("\n".join(clean(f"+ {name}") for name in imported.added))
    elif imported.diff:
        streams.result("\n".join(_painted(line, streams) for line in imported.diff.splitlines()))
    if refusal:
        raise CommandFailed(refusal)
    streams.note(_summary(imported, dry_run=dry_run))
    if imported.backup:
        kept = "would be kept" if dry_run else "is kept"
        streams.note(clean(f"What was there {kept} as {imported.backup}"))
    if imported.findings:
        found = counted(len(imported.findings), "warning")
        streams.note(f"It has {found}: weft check {quote(imported.name)}")
    return Exit.DONE


def _require_zip(file: Path) -> None:
    if file.is_dir():
        export = f"make a zip file of it: weft export {quote(str(file))}"
        hint = export if is_package(file) else "name a zip file that weft export wrote"
        raise usage(f"{file} is a folder and no zip file", hint)
    if not file.exists():
        raise not_found(f"there is no file {file}", "make one: weft export NAME")


def _refusal(imported: Import, file: Path) -> Failure:
    """Say whose work is in the way; the difference was shown."""
    lost = f"{counted(len(imported.lost), 'file')} would be lost: {', '.join(imported.lost)}"
    return Failure(
        Exit.CONFLICT,
        f"{imported.folder} has files that are not as they were imported; nothing was changed",
        cause=(lost,),
        hint=(
            f"replace them and keep a backup: weft import {quote(str(file))} --force",
            "or keep your work: give your package another folder and workflow_name",
        ),
    )


def _document(imported: Import, refusal: Failure | None, *, dry_run: bool) -> str:
    error = {"error": failure_data(refusal)} if refusal else {}
    return document(
        {
            "name": imported.name,
            "folder": str(imported.folder),
            "written": not (dry_run or imported.unchanged or refusal),
            "created": imported.created,
            "added": list(imported.added),
            "changed": list(imported.changed),
            "removed": list(imported.removed),
            "lost": list(imported.lost),
            "backup": str(imported.backup) if imported.backup else None,
            "diff": imported.diff,
            "old_digest": imported.old_digest,
            "new_digest": imported.new_digest,
            "findings": [finding_data(finding) for finding in imported.findings],
            **error,
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
