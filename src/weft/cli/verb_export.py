"""weft export: a package as a zip file with a manifest of hashes."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.cli.candidates import package_names
from weft.cli.exits import Exit
from weft.cli.failure import usage
from weft.cli.files import refuse_folder
from weft.cli.machine_formats import document
from weft.cli.places import locate_package
from weft.cli.streams import Streams, clean
from weft.cli.wording import counted
from weft.packages.archive import export_package


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
    refuse_folder(target, example=f"{folder.resolve().name}.zip")
    if target.resolve().is_relative_to(folder.resolve()):
        elsewhere = folder.parent / target.name if folder.parts else Path("..") / target.name
        raise usage(f"{target} would lie inside the package", f"weft export {name} -o {elsewhere}")
    manifest = export_package(folder, target)
    if streams.settings.json:
        content = {"file": str(target), "name": manifest.name, "digest": manifest.digest}
        streams.result(document({**content, "files": dict(manifest.files)}))
        return Exit.DONE
    streams.result(clean(str(target)))
    streams.note(
        f"{manifest.name} with {counted(len(manifest.files), 'file')}, digest {manifest.digest}"
    )
    return Exit.DONE
