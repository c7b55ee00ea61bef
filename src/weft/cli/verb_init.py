"""weft init: a workspace with two example packages."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.cli.exits import Exit
from weft.cli.failure import conflict
from weft.cli.machine_formats import document
from weft.cli.settings import PACKAGES
from weft.cli.streams import Streams, clean
from weft.errors import PackageError
from weft.packages.archive.staging import create_folder, replace_files
from weft.packages.shipped import EXAMPLES, example_files
from weft.packages.writer import schema_files


def init(
    folder: Annotated[
        Path, Parameter(name="DIR", help="The folder to make; the current one if not given.")
    ] = Path(),
    /,
    *,
    force: Annotated[
        bool, Parameter(help="Write into a folder with content, replacing only these files.")
    ] = False,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Make a workspace with two example packages."""
    parts = _parts()
    if folder.exists() and not folder.is_dir():
        raise conflict(f"{folder} is a file", "choose another name")
    present = [] if not folder.exists() else [it for it in folder.iterdir() if it.name[0] != "."]
    if present and not force:
        what = "the current folder" if folder == Path() else str(folder)
        hint = f"write into it all the same: weft init {shlex.quote(str(folder))} --force"
        raise conflict(f"{what} is not empty", "choose another folder: weft init NAME", hint)
    _write(folder, parts, afresh=not present)
    made = sorted(str(folder / top / name) for top, files in parts.items() for name in files)
    if streams.settings.json:
        streams.result(document({"folder": str(folder), "files": made}))
        return Exit.DONE
    streams.result("\n".join(_summary(folder)))
    streams.note(f"\n{_next(folder)}")
    return Exit.DONE


def _parts() -> dict[str, dict[str, bytes]]:
    """Return the files of a workspace, by top folder."""
    packages = {
        f"{example}/{name}": content
        for example in EXAMPLES
        for name, content in example_files(example).items()
    }
    schemas = {name: text.encode() for name, text in schema_files().items()}
    return {PACKAGES: packages, "schemas": schemas}


def _write(folder: Path, parts: dict[str, dict[str, bytes]], *, afresh: bool) -> None:
    """Write everything or nothing: what is new appears in one step, what is there is kept."""
    whole = {f"{top}/{name}": raw for top, files in parts.items() for name, raw in files.items()}
    if not folder.exists():
        create_folder(folder, whole)
    elif not afresh:
        replace_files(folder, whole)
    else:
        made: list[Path] = []
        try:
            for top, files in parts.items():
                create_folder(folder / top, files)
                made.append(folder / top)
        except PackageError:
            for path in made:
                shutil.rmtree(path)
            raise


def _summary(folder: Path) -> list[str]:
    made = [*(folder / PACKAGES / example for example in EXAMPLES), folder / "schemas"]
    return [f"made {clean(str(path))}" for path in made]


def _next(folder: Path) -> str:
    steps = [] if folder == Path() else [clean(f"cd {shlex.quote(str(folder))}")]
    steps += [
        f"weft chat {EXAMPLES[1]}",
        "weft check",
        f"weft diagram {EXAMPLES[1]} --format ascii",
        "weft new MyWorkflow",
    ]
    return "\n".join(["Next:", *(f"  {step}" for step in steps)])
