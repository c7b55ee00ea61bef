"""weft diagram, emit, migrate, export and import: commands that read or write one package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.cli.completion import package_names
from weft.cli.failure import Exit, Failure, not_found, usage
from weft.cli.pages.findings import painted_diff
from weft.cli.paths import locate_package, locate_packages
from weft.cli.results import Hidden, Message, Result, print_failure
from weft.cli.streams import Streams, clean, counted, require_file_path, write_file
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

Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]
PackageName: TypeAlias = Annotated[
    str, Parameter(name="NAME", help="A package by name, or its folder.", completer=package_names)
]
OutputFile: TypeAlias = Annotated[
    Path | None, Parameter(name=("--output", "-o"), metavar="FILE", help="Write to this file.")
]

#: The format of a drawing by the suffix of its file.
_FORMATS: Final[dict[str, Form]] = {
    "": "mermaid",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".txt": "ascii",
}


def _written(data: Mapping[str, object], output: Path | None, text: str) -> Result:
    """Return text that is printed, or was written to a file."""
    file = None if output is None else str(output)
    shown = text if file is None else f"wrote {clean(file)}"
    return Message({**data, "file": file, "text": text}, shown)


def diagram(
    name: PackageName,
    /,
    *,
    kind: Annotated[
        Kind, Parameter(help="graph: which agent can follow which; sequence: a conversation.")
    ] = "graph",
    form: Annotated[
        Form | None,
        Parameter(name="--format", help="Format; default: by the suffix of FILE, or mermaid."),
    ] = None,
    output: OutputFile = None,
    streams: Output,
) -> Result:
    """Draw a workflow."""
    form = form or _format_of(output)
    package = read_package(locate_package(name, streams.settings.workspace))
    errors = tuple(finding for finding in package.findings if is_error(finding))
    if errors:
        raise PackageError(f"{package.folder} cannot be drawn: it cannot be read", errors)
    text = draw(package.spec, kind=kind, form=form).rstrip("\n")
    if output is not None:
        write_file(output, text + "\n")
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


def assemblers(name: PackageName, /, *, output: OutputFile = None, streams: Output) -> Result:
    """Write the contexts of flow steps as Python classes."""
    package = read_package(locate_package(name, streams.settings.workspace))
    refuse_errors(package)
    text = emit.assemblers(package.spec).rstrip("\n")
    if output is not None:
        write_file(output, text + "\n")
    return _written({"name": package.name}, output, text)


@dataclass(frozen=True)
class MigratedFile:
    """The changes to one file."""

    file: str
    changes: list[str]


@dataclass(frozen=True)
class Migrated(Result):
    """The files that were rewritten, or would be."""

    written: bool
    files: tuple[MigratedFile, ...]
    packages: Hidden[int]

    def show(self, streams: Streams) -> None:
        """Print the changes of every file."""
        for migrated in self.files:
            streams.result(streams.paint(migrated.file, "bold"))
            streams.result("\n".join(f"  {clean(change)}" for change in migrated.changes))
        packages = counted(self.packages, "package")
        if not self.files:
            streams.note(f"Nothing to rewrite in {packages}.")
        else:
            verb = "Rewrote" if self.written else "Would rewrite"
            streams.note(f"{verb} {counted(len(self.files), 'file')} of {packages}.")


def migrate(
    *paths: Annotated[
        str,
        Parameter(
            help="Packages by name, or folders; default: the whole workspace.",
            completer=package_names,
        ),
    ],
    dry_run: Annotated[bool, Parameter(help="Print the changes, write nothing.")] = False,
    streams: Output,
) -> Result:
    """Rewrite packages in the current format."""
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
    files = tuple(
        MigratedFile(str(plan.folder / name), list(changes))
        for plan in plans
        for name, changes in plan.changes.items()
    )
    return Migrated(bool(files) and not dry_run, files, len(plans))


def export(
    name: PackageName,
    /,
    *,
    output: Annotated[
        Path | None,
        Parameter(name=("--output", "-o"), metavar="FILE", help="File; default: NAME.zip."),
    ] = None,
    streams: Output,
) -> Result:
    """Write a package to a zip file."""
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
    return Message(data, clean(str(target)), notes)


@dataclass(frozen=True)
class Imported(Result):
    """A package that was installed or updated from a zip file, or would be."""

    name: str
    folder: Path
    written: bool
    created: bool
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    lost: tuple[str, ...]
    backup: Path | None
    diff: str
    old_digest: str | None
    new_digest: str
    findings: tuple[Finding, ...]
    error: Failure | None
    dry_run: Hidden[bool]

    @property
    def exit(self) -> Exit:
        """The exit code: 7 if changed files would be lost."""
        return self.error.exit if self.error else Exit.DONE

    def content(self) -> dict[str, object]:
        """Return the fields; `error` only if there is one."""
        content = super().content()
        if self.error is None:
            del content["error"]
        return content

    def show(self, streams: Streams) -> None:
        """Print the changes, and what was done."""
        if self.created:
            streams.result("\n".join(clean(f"+ {name}") for name in self.added))
        elif self.diff:
            streams.result("\n".join(painted_diff(self.diff, streams)))
        if self.error:
            print_failure(self.error, streams)
            return
        streams.note(self._summary())
        if self.backup:
            kept = "would be kept" if self.dry_run else "is kept"
            streams.note(clean(f"The previous folder {kept} as {self.backup}"))
        for note in _warnings_note(self.findings, self.name):
            streams.note(note)

    def _summary(self) -> str:
        counts = {"added": self.added, "changed": self.changed, "removed": self.removed}
        changes = ", ".join(f"{len(files)} {word}" for word, files in counts.items() if files)
        if not changes:
            return f"{self.folder} is identical to the file; nothing to do."
        verb = _VERBS[self.dry_run, self.created]
        return clean(f"{verb} {self.folder}: {changes}.")


#: By whether nothing is written, and whether the package is new.
_VERBS: Final = {
    (True, True): "Would install",
    (True, False): "Would update",
    (False, True): "Installed",
    (False, False): "Updated",
}


def import_(
    file: Annotated[Path, Parameter(help="A zip file that weft export wrote.")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Print the changes, write nothing.")] = False,
    force: Annotated[
        bool, Parameter(help="Replace files you have changed; the previous folder is kept.")
    ] = False,
    streams: Output,
) -> Result:
    """Install or update a package from a zip file, and print the changes."""
    _require_zip(file)
    found = import_package(file, streams.settings.workspace, dry_run=dry_run, force=force)
    error = _lost_files(found, file) if found.lost and not force else None
    return Imported(
        name=found.name,
        folder=found.folder,
        written=not (dry_run or found.unchanged or error),
        created=found.created,
        added=tuple(found.added),
        changed=tuple(found.changed),
        removed=tuple(found.removed),
        lost=tuple(found.lost),
        backup=found.backup,
        diff=found.diff,
        old_digest=found.old_digest,
        new_digest=found.new_digest,
        findings=tuple(found.findings),
        error=error,
        dry_run=dry_run,
    )


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
        f"{imported.folder} has files that were changed after the import; nothing was written",
        cause=(lost,),
        hint=(
            f"replace them and keep a backup: weft import {quote(str(file))} --force",
            "or keep your changes: give your package another folder and workflow_name",
        ),
    )


def _warnings_note(findings: Sequence[Finding], name: str) -> list[str]:
    warnings = counted(len(findings), "warning")
    return [f"It has {warnings}: weft check {quote(name)}"] if findings else []
