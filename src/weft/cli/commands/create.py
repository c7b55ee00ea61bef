"""weft init and weft new: a workspace with examples, a package from a template."""

import asyncio
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Final
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
from weft.cli.failure import conflict, usage
from weft.cli.results import Hidden, Result
from weft.cli.settings import PACKAGES
from weft.cli.streams import Streams, clean
from weft.environment import read_environment
from weft.errors import PackageError
from weft.ids import AGENT_NAME
from weft.packages.archive.staging import create_folder, replace_files
from weft.packages.workspace import EXAMPLES, example_files, template_files
from weft.packages.writer import schema_files
from weft.spec.patterns import PATTERNS, Pattern, find_pattern, nearest_pattern

_BLANK: Final = "blank"


@dataclass(frozen=True)
class CreatedWorkspace(Result):
    """A new workspace."""

    folder: Path
    files: tuple[str, ...]
    documents: Hidden[Path | None]

    def show(self, streams: Streams) -> None:
        """Print the folders, and what to do next."""
        created = [self.folder / PACKAGES / example for example in EXAMPLES]
        created += [self.folder / "schemas", self.folder / "documents"]
        if self.documents:
            created.append(self.documents)
        streams.result("\n".join(f"created {clean(str(path))}" for path in created))
        steps = [] if self.folder == Path() else [clean(f"cd {quote(str(self.folder))}")]
        steps += [
            f"weft chat {EXAMPLES[1]}",
            f"weft run {EXAMPLES[2]} --model sample",
            "weft check",
            f"weft diagram {EXAMPLES[1]} --format ascii",
            "weft documents list",
            "weft new MyWorkflow",
            "weft generate 'Route questions of customers to billing or tech'",
        ]
        streams.note("\n".join(["\nNext:", *(f"  {step}" for step in steps)]))


@dataclass(frozen=True)
class CreatedPackage(Result):
    """A new package."""

    name: str
    pattern: str
    files: tuple[str, ...]
    about: Hidden[str]
    steps: Hidden[tuple[str, ...]]

    def show(self, streams: Streams) -> None:
        """Print the files, and what to do next."""
        streams.result("\n".join(f"created {file}" for file in self.files))
        streams.note(f"\n{self.name} {self.about}. Next:")
        for step in self.steps:
            streams.note(f"  {step}")


def init(
    folder: Annotated[
        Path, Parameter(name="DIR", help="The folder to create; default: the current folder.")
    ] = Path(),
    /,
    *,
    force: Annotated[
        bool, Parameter(help="Write into a folder with content; replaces only these files.")
    ] = False,
    streams: Annotated[Streams, Parameter(parse=False)],  # noqa: ARG001 - given to every command
) -> Result:
    """Create a workspace with three example packages."""
    parts = _workspace_files()
    if folder.exists() and not folder.is_dir():
        raise conflict(f"{folder} is a file", "choose another name")
    present = folder.exists() and any(path.name[0] != "." for path in folder.iterdir())
    if present and not force:
        what = "the current folder" if folder == Path() else str(folder)
        hint = f"write into it nevertheless: weft init {quote(str(folder))} --force"
        raise conflict(f"{what} is not empty", "choose another folder: weft init NAME", hint)
    _write(folder, parts, is_empty=not present)
    documents = _put_demo_documents(folder)
    files = sorted(str(folder / top / name) for top, each in parts.items() for name in each)
    return CreatedWorkspace(folder, tuple(files), documents)


def _workspace_files() -> dict[str, dict[str, bytes]]:
    """Return the files of a workspace by top folder."""
    packages = {
        f"{example}/{name}": content
        for example in EXAMPLES
        for name, content in example_files(example).items()
    }
    schemas = {name: text.encode() for name, text in schema_files().items()}
    documents = {"demo.jsonl": demo_documents().encode()}
    return {PACKAGES: packages, "schemas": schemas, "documents": documents}


def _put_demo_documents(folder: Path) -> Path | None:
    """Import the documents of the examples, and return the store.

    A store that WEFT_DOCUMENTS names is left alone.
    """
    if read_environment().get("WEFT_DOCUMENTS"):
        return None
    # Deferred: it loads the runtime.
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


def _write(folder: Path, parts: dict[str, dict[str, bytes]], *, is_empty: bool) -> None:
    """Write all files or none."""
    whole = {f"{top}/{name}": raw for top, files in parts.items() for name, raw in files.items()}
    if not folder.exists():
        create_folder(folder, whole)
    elif not is_empty:
        replace_files(folder, whole)
    else:
        created: list[Path] = []
        try:
            for top, files in parts.items():
                create_folder(folder / top, files)
                created.append(folder / top)
        except PackageError:
            for path in created:
                shutil.rmtree(path)
            raise


def new(
    name: Annotated[str, Parameter(help="The name of the package, such as CustomerSupport.")],
    /,
    *,
    pattern: Annotated[
        str,
        Parameter(help="Pattern: 1 to 9, its name, or blank; default: 1.", completer=patterns),
    ] = "1",
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Result:
    """Create a package from the template of a pattern."""
    if not AGENT_NAME.match(name):
        raise usage(f'invalid package name "{name}"', *_better_name(name))
    chosen = None if pattern.lower() == _BLANK else _pattern(pattern)
    folder = streams.settings.workspace / PACKAGES / name
    if folder.exists():
        raise conflict(f"{folder} already exists", "choose another name")
    if chosen is None:
        files, about = _blank_files(name), "has one agent without tools"
    else:
        files = template_files(chosen.name, name)
        about = f"follows pattern {chosen.id}, {chosen.title}: {chosen.summary}"
    create_folder(folder, files)
    paths = tuple(str(folder / file) for file in sorted(files))
    used = chosen.name if chosen else _BLANK
    return CreatedPackage(name, used, paths, about, _next_steps(name, streams))


def _blank_files(name: str) -> dict[str, bytes]:
    """Return the files of a package with one agent."""
    role = {"id": "role", "heading": "Role", "content": "Answer the user."}
    contents = {
        "orchestrator.json": {
            "workflow_name": name,
            "initial_agent": "Assistant",
            "max_turns": 20,
            "human_in_the_loop": True,
        },
        "agents.json": {"agents": [{"agent_name": "Assistant", "prompt_sections": [role]}]},
    }
    return {
        file: (json.dumps(content, indent=2) + "\n").encode() for file, content in contents.items()
    }


def _better_name(name: str) -> list[str]:
    # Without accents, which are separate characters after normalisation.
    letters = "".join(char for char in normalize("NFKD", name) if not combining(char))
    words = re.findall(r"[^\W_]+", letters)
    better = "".join(word[0].upper() + word[1:] for word in words)
    if AGENT_NAME.match(better):
        return [f"for example: weft new {better}"]
    return ["start with a capital letter, then letters and digits only: weft new CustomerSupport"]


def _pattern(wanted: str) -> Pattern:
    found = find_pattern(wanted)
    if found:
        return found
    near = nearest_pattern(wanted)
    hints = [f"did you mean {near}?"] if near else []
    known = ", ".join(f"{pattern.id} {pattern.name}" for pattern in PATTERNS)
    raise usage(f'unknown pattern "{wanted}"', *hints, f"choose one of: {known}, {_BLANK}")


def _next_steps(name: str, streams: Streams) -> tuple[str, ...]:
    steps = [f"weft check {name}", f"weft chat {name}", f"weft diagram {name} --format ascii"]
    schemas = streams.settings.workspace / "schemas"
    if not schemas.is_dir():
        steps.append(f"weft schema --write {quote(str(schemas))}      for completion in editors")
    return tuple(steps)
