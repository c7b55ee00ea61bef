"""weft export: a package as a zip file with a manifest of hashes."""

from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from weft.cli.candidates import package_names
from weft.cli.exits import Exit
from weft.cli.failure import usage
from weft.cli.files import refuse_no_file
from weft.cli.machine_formats import document, finding_data
from weft.cli.places import locate_package
from weft.cli.streams import Streams, clean
from weft.cli.wording import counted
from weft.packages.archive.exporting import export_package


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
    refuse_no_file(target, example=f"{folder.resolve().name}.zip")
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
