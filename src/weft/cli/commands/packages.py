"""weft diagram, emit, migrate, export and import: commands that read or write one package."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from weft.cli.failure import Exit, Failure, not_found, usage
from weft.cli.options import Output, command
from weft.cli.pages.findings import painted_diff
from weft.cli.paths import PackageName, locate_package, locate_packages
from weft.cli.results import Result
from weft.cli.streams import clean, counted, require_file_path, write_file
from weft.diagrams import Form, Kind, draw
from weft.errors import PackageError
from weft.findings import Finding, is_error
from weft.packages import emit
from weft.packages.archive.exporting import export_package
from weft.packages.archive.importing import Import, import_package
from weft.packages.edit.migration import Migration, plan_migration, write_migrations
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.packages.workspace import is_package

#: The format of a drawing by the suffix of its file.
_FORMATS: Final[dict[str, Form]] = {
    "": "mermaid",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".txt": "ascii",
}


def _written(data: Mapping[str, object], output: Path | None, text: str) -> Result:
    """Write a text to a file, if one is named; otherwise it is printed."""
    if output is None:
        return Result({**data, "file": None, "text": text}, text)
    write_file(output, text + "\n")
    return Result({**data, "file": str(output), "text": text}, f"wrote {clean(str(output))}")


@command
def diagram(
    name: PackageName,
    /,
    *,
    kind: Kind = "graph",
    format_: Form | None = None,
    output: Path | None = None,
    streams: Output,
) -> Result:
    """Draw a workflow.

    Options:
      NAME               A package by name, or its folder.
      --kind             graph: which agent can follow which; sequence: a conversation.
      --format           Format; default: by the suffix of FILE, or mermaid.
      -o, --output FILE  Write to this file.

    Examples:
      weft diagram Returns
      weft diagram Returns --kind sequence --format ascii -o out.txt
    """
    form = format_ or _format_of(output)
    package = read_package(locate_package(name, streams.settings.workspace))
    errors = tuple(finding for finding in package.findings if is_error(finding))
    if errors:
        raise PackageError(f"{package.folder} cannot be drawn: it cannot be read", errors)
    text = draw(package.spec, kind=kind, form=form).rstrip("\n")
    return _written({"name": package.name, "kind": kind, "format": form}, output, text)


def _format_of(output: Path | None) -> Form:
    """Return the format for a file."""
    suffix = output.suffix.lower() if output else ""
    if suffix not in _FORMATS:
        known = ", ".join(f"{each} ({form})" for each, form in _FORMATS.items() if each)
        raise usage(
            f'unknown drawing format "{suffix}"',
            f"use one of these suffixes: {known}",
            "or name the format: --format",
        )
    return _FORMATS[suffix]


@command
def assemblers(name: PackageName, /, *, output: Path | None = None, streams: Output) -> Result:
    """Write the contexts of flow steps as Python classes.

    Each class does what its step declares. Name it as the step's assembler, in place of its
    sources, to change it in code.

    Options:
      NAME               A package by name, or its folder.
      -o, --output FILE  Write to this file.

    Examples:
      weft emit assemblers Research
      weft emit assemblers Research -o workflows/Research/tools/contexts.py
    """
    package = read_package(locate_package(name, streams.settings.workspace))
    refuse_errors(package)
    return _written({"name": package.name}, output, emit.assemblers(package.spec).rstrip("\n"))


@command
def migrate(*paths: PackageName, dry_run: bool = False, streams: Output) -> Result:
    """Rewrite packages in the current format.

    Options:
      PATHS      Packages by name, or folders; default: the whole workspace.
      --dry-run  Print the changes, write nothing.

    Examples:
      weft migrate --dry-run
      weft migrate Returns
    """
    plans: list[Migration] = []
    refused: list[Finding] = []
    for folder in locate_packages(paths, streams.settings.workspace):
        try:
            plans.append(plan_migration(folder))
        except PackageError as error:
            refused += error.findings
    if refused:
        raise PackageError("a package cannot be read; nothing was written", tuple(refused))
    if not dry_run:
        write_migrations(plans)
    files = {
        str(plan.folder / name): list(changes)
        for plan in plans
        for name, changes in plan.changes.items()
    }
    lines = [
        line
        for file, changes in files.items()
        for line in (streams.paint(file, "bold"), *(f"  {clean(change)}" for change in changes))
    ]
    packages = counted(len(plans), "package")
    verb = "Would rewrite" if dry_run else "Rewrote"
    done = f"{verb} {counted(len(files), 'file')} of" if files else "Nothing to rewrite in"
    changed = [{"file": file, "changes": changes} for file, changes in files.items()]
    data = {"written": bool(files) and not dry_run, "files": changed}
    return Result(data, "\n".join(lines), [f"{done} {packages}."])


@command
def export(name: PackageName, /, *, output: Path | None = None, streams: Output) -> Result:
    """Write a package to a zip file with a manifest of hashes.

    Options:
      NAME               A package by name, or its folder.
      -o, --output FILE  File; default: NAME.zip.

    Examples:
      weft export Returns
      weft export Returns -o returns.zip
    """
    folder = locate_package(name, streams.settings.workspace)
    target = output or Path(f"{folder.resolve().name}.zip")
    require_file_path(target, example=f"{folder.resolve().name}.zip")
    if target.resolve().is_relative_to(folder.resolve()):
        elsewhere = folder.parent / target.name if folder.parts else Path("..") / target.name
        command = f"weft export {quote(name)} -o {quote(str(elsewhere))}"
        raise usage(f"{target} is inside the package", command)
    done = export_package(folder, target)
    manifest = done.manifest
    files = dict(manifest.files)
    content = {"file": str(target), "name": manifest.name, "digest": manifest.digest}
    notes = [
        f"{manifest.name} with {counted(len(files), 'file')}, digest {manifest.digest}",
        *_warnings_note(done.findings, name),
    ]
    data = {**content, "files": files, "findings": done.findings}
    return Result(data, clean(str(target)), notes)


@command
def import_(
    file: Path, /, *, dry_run: bool = False, force: bool = False, streams: Output
) -> Result:
    """Install or update a package from a zip file.

    Options:
      FILE       A zip file that weft export wrote.
      --dry-run  Print the changes, write nothing.
      --force    Replace files you have changed; the previous folder is kept.

    Examples:
      weft import returns.zip --dry-run
      weft import returns.zip --force      replaces your changes, keeps a backup
    """
    _require_zip(file)
    found = import_package(file, streams.settings.workspace, dry_run=dry_run, force=force)
    error = _lost_files(found, file) if found.lost and not force else None
    data = {
        "name": found.name,
        "folder": found.folder,
        "written": not (dry_run or found.unchanged or error),
        "created": found.created,
        "added": found.added,
        "changed": found.changed,
        "removed": found.removed,
        "lost": found.lost,
        "backup": found.backup,
        "diff": found.diff,
        "old_digest": found.old_digest,
        "new_digest": found.new_digest,
        "findings": found.findings,
        **({"error": error} if error else {}),
    }
    if found.created:
        text = "\n".join(clean(f"+ {name}") for name in found.added)
    else:
        text = "\n".join(painted_diff(found.diff, streams))
    notes = [] if error else list(_import_notes(found, dry_run=dry_run))
    return Result(data, text, notes, failure=error)


def _import_notes(found: Import, *, dry_run: bool) -> Iterator[str]:
    """Yield what was done, or would be."""
    counts = {"added": found.added, "changed": found.changed, "removed": found.removed}
    changes = ", ".join(f"{len(files)} {word}" for word, files in counts.items() if files)
    if changes:
        yield clean(f"{_VERBS[dry_run, found.created]} {found.folder}: {changes}.")
    else:
        yield f"{found.folder} is identical to the file; nothing to do."
    if found.backup:
        kept = "would be kept" if dry_run else "is kept"
        yield clean(f"The previous folder {kept} as {found.backup}")
    yield from _warnings_note(found.findings, found.name)


#: By whether nothing is written, and whether the package is new.
_VERBS: Final = {
    (True, True): "Would install",
    (True, False): "Would update",
    (False, True): "Installed",
    (False, False): "Updated",
}


def _require_zip(file: Path) -> None:
    if file.is_dir():
        export = f"write a zip file: weft export {quote(str(file))}"
        hint = export if is_package(file) else "name a zip file that weft export wrote"
        raise usage(f"{file} is a folder, not a zip file", hint)
    if not file.exists():
        raise not_found(f"the file {file} does not exist", "write one: weft export NAME")


def _lost_files(imported: Import, file: Path) -> Failure:
    """Return that an import would overwrite changed files; the diff was printed before."""
    lost = f"{counted(len(imported.lost), 'file')} would be lost: {', '.join(imported.lost)}"
    return Failure(
        Exit.CONFLICT,
        f"{imported.folder} has files that no import has written; nothing was written",
        cause=(lost,),
        hint=(
            f"replace them and keep a backup: weft import {quote(str(file))} --force",
            "or keep your changes: give your package another folder and workflow_name",
        ),
    )


def _warnings_note(findings: Sequence[Finding], name: str) -> list[str]:
    warnings = counted(len(findings), "warning")
    return [f"It has {warnings}: weft check {quote(name)}"] if findings else []
