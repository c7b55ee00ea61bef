"""weft init and weft new: a workspace with examples, a package from a template."""

import asyncio
import re
import shlex
import shutil
from pathlib import Path
from shlex import quote
from typing import Annotated
from unicodedata import combining, normalize

from cyclopts import Parameter

from weft.app.documents import (
    DOCUMENTS,
    demo_documents,
    open_documents,
    put_document,
    read_records,
)
from weft.cli.completion import patterns
from weft.cli.failure import Exit, conflict, usage
from weft.cli.formats.documents import document
from weft.cli.settings import PACKAGES
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.environment import read_environment
from weft.errors import PackageError
from weft.ids import AGENT_NAME
from weft.packages.archive.staging import create_folder, replace_files
from weft.packages.workspace import EXAMPLES, example_files, template_files
from weft.packages.writer import schema_files
from weft.spec.patterns import PATTERNS, Pattern, find_pattern, nearest_pattern


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
    """Make a workspace with three example packages."""
    parts = _parts()
    if folder.exists() and not folder.is_dir():
        raise conflict(f"{folder} is a file", "choose another name")
    present = [] if not folder.exists() else [it for it in folder.iterdir() if it.name[0] != "."]
    if present and not force:
        what = "the current folder" if folder == Path() else str(folder)
        hint = f"write into it all the same: weft init {shlex.quote(str(folder))} --force"
        raise conflict(f"{what} is not empty", "choose another folder: weft init NAME", hint)
    _write(folder, parts, afresh=not present)
    kept = _put_demo(folder)
    made = sorted(str(folder / top / name) for top, files in parts.items() for name in files)
    if streams.settings.json:
        streams.result(document({"folder": str(folder), "files": made}))
        return Exit.DONE
    streams.result("\n".join([*_summary(folder), *([f"made {clean(str(kept))}"] if kept else [])]))
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
    documents = {"demo.jsonl": demo_documents().encode()}
    return {PACKAGES: packages, "schemas": schemas, "documents": documents}


def _put_demo(folder: Path) -> Path | None:
    """Put the documents of the examples into a store of this workspace, and return where it is.

    A store that the operator has named elsewhere is left alone.
    """
    if read_environment().get("WEFT_DOCUMENTS"):
        return None
    # Deferred: whatever runs a workflow comes with it.
    from weft.app.folders import LOCAL  # noqa: PLC0415

    async def put_all() -> None:
        store = await open_documents(folder, {})
        try:
            for collection, new in read_records(demo_documents(), None):
                await put_document(store, LOCAL, collection, new)
        finally:
            await store.close()

    asyncio.run(put_all())
    return folder / DOCUMENTS


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
    made = [folder / PACKAGES / example for example in EXAMPLES]
    made += [folder / "schemas", folder / "documents"]
    return [f"made {clean(str(path))}" for path in made]


def _next(folder: Path) -> str:
    steps = [] if folder == Path() else [clean(f"cd {shlex.quote(str(folder))}")]
    steps += [
        f"weft chat {EXAMPLES[1]}",
        f"weft run {EXAMPLES[2]} --model sample",
        "weft check",
        f"weft diagram {EXAMPLES[1]} --format ascii",
        "weft documents list",
        "weft new MyWorkflow",
        "weft generate 'Route questions of customers to billing or tech'",
    ]
    return "\n".join(["Next:", *(f"  {step}" for step in steps)])


def new(
    name: Annotated[str, Parameter(help="The name of the package, such as CustomerSupport.")],
    /,
    *,
    pattern: Annotated[
        str,
        Parameter(
            help="The pattern to follow: 1 to 9, or its name; 1 if not given.", completer=patterns
        ),
    ] = "1",
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Make a package from the template of a pattern."""
    if not AGENT_NAME.match(name):
        raise usage(f'"{name}" cannot be the name of a package', *_better_name(name))
    chosen = _pattern(pattern)
    workspace = streams.settings.workspace
    folder = workspace / PACKAGES / name
    if folder.exists():
        raise conflict(f"{folder} already exists", "choose another name")
    files = template_files(chosen.name, name)
    create_folder(folder, files)
    made = [str(folder / file) for file in sorted(files)]
    if streams.settings.json:
        streams.result(document({"name": name, "pattern": chosen.name, "files": made}))
        return Exit.DONE
    streams.result("\n".join(f"made {file}" for file in made))
    streams.note(f"\n{name} follows pattern {chosen.id}, {chosen.title}: {chosen.summary}. Next:")
    for step in _next_steps(name, streams):
        streams.note(f"  {step}")
    return Exit.DONE


def _better_name(name: str) -> list[str]:
    # Without accents, which are characters of their own when letters are taken apart.
    letters = "".join(it for it in normalize("NFKD", name) if not combining(it))
    words = re.findall(r"[^\W_]+", letters)
    better = "".join(word[0].upper() + word[1:] for word in words)
    if AGENT_NAME.match(better):
        return [f"write it like this: weft new {better}"]
    return ["begin with a capital letter, then letters and digits only: weft new CustomerSupport"]


def _pattern(wanted: str) -> Pattern:
    found = find_pattern(wanted)
    if found:
        return found
    meant = nearest_pattern(wanted)
    hints = [f"did you mean {meant}?"] if meant else []
    known = ", ".join(f"{it.id} {it.name}" for it in PATTERNS)
    raise usage(f'there is no pattern "{wanted}"', *hints, f"choose one of: {known}")


def _next_steps(name: str, streams: Streams) -> list[str]:
    steps = [f"weft check {name}", f"weft chat {name}", f"weft diagram {name} --format ascii"]
    if not (streams.settings.workspace / "schemas").is_dir():
        schemas = streams.settings.workspace / "schemas"
        place = quote(str(schemas))
        steps.append(f"weft schema --write {place}      lets editors complete the files")
    return steps
