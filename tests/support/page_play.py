"""What tests of pages share: examples as they stand there, and a workspace to run them in."""

import json
import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from weft import UserMessage
from weft.adapters.system_clock import SystemClock
from weft.app.folders import LOCAL
from weft.app.hosts import open_outside
from weft.app.installation import linking_of
from weft.cli.app import main
from weft.engine.state import State
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.runtime.host import Host
from weft.spec.workflow import WorkflowSpec
from weft.testing import ManualClock, ScriptedModel, host_for

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"(?:^`([^`\n]+)`[^\n]*\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A value that a page states after an example.
STATED = re.compile(r"`(\w+)`\s+is\s+`([^`]+)`")


@dataclass(frozen=True)
class Example:
    """What stands under a heading: files, commands, definitions, and what comes of each of them."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    commands: list[str] = field(default_factory=list[str])
    definitions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stated: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def read_example(text: str) -> Example:
    """Read a section; the values stated after definitions are what they come to."""
    found = Example()
    end = 0
    for block in BLOCK.finditer(text):
        name, kind, content = block.groups()
        if found.stated:
            found.stated[-1].update(_values(text[end : block.start()]))
        end = block.end()
        if name:
            found.files[name] = content
        elif kind == "console":
            found.commands.extend(content.splitlines())
        elif kind == "json":
            found.definitions.append(json.loads(content))
            found.stated.append({})
    if found.stated:
        found.stated[-1].update(_values(text[end:]))
    return found


def _values(prose: str) -> dict[str, Any]:
    return {name: json.loads(said) for name, said in STATED.findall(prose)}


def read_pages(*names: str) -> str:
    """Return the text of several pages of one subject, one after the other."""
    return "\n".join((DOCS / name).read_text(encoding="utf-8") for name in names)


def chapter(page: str, heading: str) -> str:
    """Return what stands under a heading of the second level."""
    return page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


def sections(text: str) -> dict[str, str]:
    """Return the parts of a chapter by their headings; what stands before the first by none."""
    first, *parts = text.split("\n### ")
    named = (part.partition("\n") for part in parts)
    return {"": first, **{name: inside for name, _, inside in named}}


CONTEXT = read_pages("context.md", "triggers.md", "tools.md")
BASE = read_example(chapter(CONTEXT, "The package of the examples")).files


@dataclass
class Desk:
    """A workspace with the package of the examples, and what happens in its runs."""

    workspace: Path
    clerk: Sequence[Any] = ("Hello.",)
    helper: Sequence[Any] = ("Bye.",)
    settings: dict[str, str] = field(default_factory=dict[str, str])
    clock: ManualClock | None = None
    #: What else happens in a run, and what its spec has that files do not.
    after: Callable[[Host, str], Awaitable[None]] | None = None
    changed: Callable[[WorkflowSpec], WorkflowSpec] | None = None
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel([]))

    def put(self, example: Example, number: int = 0) -> None:
        """Write the package of an example, and put its documents."""
        self.write(example.definitions[number], example.files)
        for line in example.commands:
            if line.startswith("weft documents put"):
                assert main(shlex.split(line)[1:]) == 0

    def write(self, definitions: dict[str, Any], files: dict[str, str]) -> None:
        """Write the package with these variables, shown to both agents."""
        shown = {"variables": list(definitions)}
        declared = {"definitions": definitions, "agents": {"Clerk": shown, "Helper": shown}}
        variables = json.dumps({"context_variables": declared})
        name = "workflows/Desk/context_variables.json"
        for path, text in {**BASE, name: variables, **files}.items():
            file = self.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    async def play(self, *messages: str) -> State:
        """Run the package with these messages of the user."""
        clock = self.clock or SystemClock()
        linking = linking_of(self.settings)
        package = read_package(self.workspace / "workflows" / "Desk")
        refuse_errors(package, kinds=linking.kinds)
        self.model = ScriptedModel({"Clerk": self.clerk, "Helper": self.helper})
        async with host_for(
            self.changed(package.spec) if self.changed else package.spec,
            self.model,
            code=package.code,
            clock=clock,
            environment=self.settings,
            outside=open_outside(self.workspace, self.settings, clock),
            linking=linking,
        ) as host:
            run = await host.start("Desk", scope=LOCAL, message=messages[0])
            await host.settled(run, scope=LOCAL)
            for message in messages[1:]:
                await host.deliver(run, UserMessage(message), scope=LOCAL)
                await host.settled(run, scope=LOCAL)
            if self.after is not None:
                await self.after(host, run)
            return await host.state(run, scope=LOCAL)


def open_desk(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a workspace, which is where commands are typed from now on."""
    monkeypatch.chdir(workspace)
    (workspace / "workflows").mkdir()
    return Desk(workspace)
