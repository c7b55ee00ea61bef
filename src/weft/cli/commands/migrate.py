"""weft migrate: older spellings become the present one."""

from typing import Annotated

from cyclopts import Parameter

from weft.cli.completion import package_names
from weft.cli.failure import Exit
from weft.cli.formats.documents import document
from weft.cli.paths import locate_packages
from weft.cli.streams import Streams
from weft.cli.text import clean, counted
from weft.errors import PackageError
from weft.findings import Finding
from weft.packages.edit.migration import Migration, plan_migration, write_migrations


def migrate(
    *paths: Annotated[
        str,
        Parameter(
            help="Packages by name, or folders; the whole workspace if none is given.",
            completer=package_names,
        ),
    ],
    dry_run: Annotated[bool, Parameter(help="Say what would change and write nothing.")] = False,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Rewrite packages to the present spelling and say what changed."""
    folders = locate_packages(paths, streams.settings.workspace)
    plans: list[Migration] = []
    refused: list[Finding] = []
    for folder in folders:
        try:
            plans.append(plan_migration(folder))
        except PackageError as error:
            refused += error.findings
    if refused:
        raise PackageError(
            "a package cannot be rewritten before it can be read; nothing was written",
            tuple(refused),
        )
    if not dry_run:
        write_migrations(plans)
    _print(plans, streams, dry_run=dry_run)
    return Exit.DONE


def _print(plans: list[Migration], streams: Streams, *, dry_run: bool) -> None:
    changes = {
        str(plan.folder / name): list(said) for plan in plans for name, said in plan.changes.items()
    }
    if streams.settings.json:
        listed = [{"file": file, "changes": said} for file, said in changes.items()]
        streams.result(document({"written": bool(listed) and not dry_run, "files": listed}))
        return
    for file, said in changes.items():
        streams.result(streams.paint(file, "bold"))
        streams.result("\n".join(f"  {clean(change)}" for change in said))
    streams.note(_summary(len(changes), len(plans), dry_run=dry_run))


def _summary(files: int, packages: int, *, dry_run: bool) -> str:
    looked = counted(packages, "package")
    if not files:
        return f"Nothing to rewrite in {looked}."
    done = "Would rewrite" if dry_run else "Rewrote"
    return f"{done} {counted(files, 'file')} of {looked}."
