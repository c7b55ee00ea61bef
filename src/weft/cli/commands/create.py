"""weft init and weft new: a workspace with examples, a package from a template."""

import asyncio
import json
import re
import shutil
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias
from unicodedata import combining, normalize

from cyclopts import Parameter

from weft.app.documents import (
    DOCUMENTS,
    demo_documents,
    documents_address,
    open_documents,
    put_document,
    read_records,
)
from weft.cli.completion import patterns
from weft.cli.failure import conflict, did_you_mean, usage
from weft.cli.options import Output, command
from weft.cli.results import Result
from weft.cli.settings import PACKAGES
from weft.cli.streams import clean
from weft.environment import read_environment
from weft.errors import PackageError
from weft.ids import AGENT_NAME
from weft.packages.archive.staging import create_folder, replace_files
from weft.packages.workspace import EXAMPLES, example_files, template_files
from weft.packages.writer import schema_files
from weft.spec.patterns import PATTERNS, Pattern, find_pattern, nearest_pattern

_BLANK: Final = "blank"
#: The folder of a workspace for forms.
_FORMS: Final = "forms"

PatternName: TypeAlias = Annotated[str, Parameter(completer=patterns)]

#: The fields of an artifact for the example of a board.
_LEAD: Final = "headline=Rain source=radio contact=Ada urgency=3"


@command
def init(
    folder: Path = Path(),
    /,
    *,
    force: bool = False,
    streams: Output,  # noqa: ARG001 - given to every command
) -> Result:
    """Create a workspace with example packages: two conversations, a flow and a board.

    Options:
      DIR      The folder to create; default: the current folder.
      --force  Write into a folder with content; replaces only these files.

    Examples:
      weft init shop
      weft init shop --force      writes the examples again
    """
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
    created = [folder / PACKAGES / example for example in EXAMPLES]
    created += [folder / "schemas", folder / "documents", *([documents] if documents else [])]
    steps = [
        *([] if folder == Path() else [clean(f"cd {quote(str(folder))}")]),
        f"weft chat {EXAMPLES[1]}",
        f"weft run {EXAMPLES[2]} --model sample",
        f"weft board publish {EXAMPLES[3]} Lead {_LEAD} --model sample",
        "weft check",
        "weft test",
        f"weft diagram {EXAMPLES[1]} --format ascii",
        "weft documents list",
        "weft serve",
        "weft new MyWorkflow",
        "weft generate 'Route questions of customers to billing or tech'",
    ]
    text = "\n".join(f"created {clean(str(path))}" for path in created)
    return Result(
        {"folder": folder, "files": files}, text, ["\nNext:", *(f"  {step}" for step in steps)]
    )


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

    A store that a setting names is left alone.
    """
    if documents_address(read_environment()):
        return None
    # Deferred: it loads the runtime.
    from weft.cli.scope import command_scope  # noqa: PLC0415

    async def put_all() -> None:
        store = await open_documents(folder, {})
        try:
            for collection, new in read_records(demo_documents(), None):
                await put_document(store, command_scope(), collection, new)
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


@command
def new(
    name: str, /, *, pattern: PatternName | None = None, form: bool = False, streams: Output
) -> Result:
    """Create a package from the template of a pattern, or a form to generate one from.

    Patterns:
      1  ContextAwareRouting  a router sends each request on
      2  Escalation           a harder case moves to a stronger agent
      3  FeedbackLoop         a draft is reviewed until it is accepted
      4  Hierarchical         a lead delegates to leads who delegate to workers
      5  Organic              agents hand off by what was said
      6  Pipeline             each agent hands its result to the next
      7  Redundant            several agents answer, an evaluator decides
      8  Star                 a hub asks specialists one after the other
      9  TriageWithTasks      a request becomes tasks that are worked off
         blank                one agent without tools, to start from nothing

    Options:
      NAME            The name of the package, such as CustomerSupport.
      --pattern NAME  Pattern: 1 to 9, its name, or blank; default: 1.
      --form          Write a form with explanations instead, to change and generate from.

    Examples:
      weft new Returns --pattern 6
      weft new Returns --pattern FeedbackLoop
      weft new Returns --pattern blank
      weft new Returns --form
    """
    if not AGENT_NAME.match(name):
        raise usage(f'invalid package name "{name}"', *_better_name(name))
    if form:
        return _new_form(name, pattern, streams)
    chosen = None if (pattern or "").lower() == _BLANK else _pattern(pattern or "1")
    folder = streams.settings.workspace / PACKAGES / name
    if folder.exists():
        raise conflict(f"{folder} already exists", "choose another name")
    if chosen is None:
        files, about = _blank_files(name), "has one agent without tools"
    else:
        files = template_files(chosen.name, name)
        about = f"follows pattern {chosen.id}, {chosen.title}: {chosen.summary}"
    create_folder(folder, files)
    paths = [str(folder / file) for file in sorted(files)]
    data = {"name": name, "pattern": chosen.name if chosen else _BLANK, "files": paths}
    steps = [f"weft check {name}", f"weft chat {name}", f"weft diagram {name} --format ascii"]
    schemas = streams.settings.workspace / "schemas"
    if not schemas.is_dir():
        steps.append(f"weft schema --write {quote(str(schemas))}      for completion in editors")
    notes = [f"\n{name} {about}. Next:", *(f"  {step}" for step in steps)]
    return Result(data, "\n".join(f"created {path}" for path in paths), notes)


def _new_form(name: str, pattern: str | None, streams: Output) -> Result:
    """Write a form, and say how it becomes a package."""
    if pattern is not None:
        raise usage("--form and --pattern exclude each other", "the steps of a form decide")
    # Deferred: it loads the compiler.
    from weft.generator.forms.form import example_form  # noqa: PLC0415

    folder = streams.settings.workspace / _FORMS
    file = folder / f"{name}.yaml"
    if file.exists():
        raise conflict(f"{file} already exists", "choose another name")
    content = {file.name: example_form(name).encode()}
    if folder.exists():
        replace_files(folder, content)
    else:
        create_folder(folder, content)
    steps = [
        f"change {clean(str(file))}: its steps, who does each, and what follows",
        f"weft generate --form {clean(quote(str(file)))} --approve",
        f"weft test {name}",
    ]
    notes = ["\nNext:", *(f"  {step}" for step in steps)]
    return Result({"name": name, "form": str(file)}, f"created {clean(str(file))}", notes)


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
    hints = did_you_mean(nearest_pattern(wanted))
    known = ", ".join(f"{pattern.id} {pattern.name}" for pattern in PATTERNS)
    raise usage(f'unknown pattern "{wanted}"', *hints, f"choose one of: {known}, {_BLANK}")
