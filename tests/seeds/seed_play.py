"""Packages for the tests of the seeds: written as files, opened as a workspace, run, read back.

Everything is real but the model: the host of the workspace, its journal and its documents are those
that `weft run` uses, and the model is one whose answers a script types in.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from weft.app.documents import open_documents
from weft.app.hosts import open_host
from weft.engine.events import Event, HandedOff, RunStarted, VariableSet
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.findings import Finding
from weft.packages.review import review
from weft.ports.documents import Collection
from weft.ports.model import ModelRequest
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, UserMessage
from weft.testing.models import ScriptedModel

ADA = Scope("acme", "ada")

#: The name of the package where a test does not say another.
NAME = "Desk"

#: Tools that any package may have: they read, set and ask.
DESK = '''
from weft import use_ui_tool


def look(name: str, context_variables) -> dict:
    """Read a variable."""
    return {"found": context_variables.get(name)}


def put(name: str, value: str, context_variables) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return "done"


async def ask(question: str = "Well?") -> dict:
    """Ask a person and do nothing else."""
    return await use_ui_tool("ask", {"question": question})
'''

Files: TypeAlias = Mapping[str, Any]
Script: TypeAlias = Mapping[str, Iterable[Any]] | Iterable[Any]
Stored: TypeAlias = tuple[str, str | None, Mapping[str, Any]]
Step: TypeAlias = Callable[[Host, str], Awaitable[Any]]
EventT = TypeVar("EventT")


@dataclass(frozen=True)
class Played:
    """A run that has come to rest."""

    row: RunRow
    state: State
    events: list[Event]
    #: What the model was asked, call by call.
    requests: list[ModelRequest]

    def of(self, kind: type[EventT]) -> list[EventT]:
        """The events of a kind, in order, without their envelopes."""
        return [event.data for event in self.events if isinstance(event.data, kind)]

    def sets(self, name: str) -> list[tuple[Any, str]]:
        """What a variable was set to, and by whom, one event after the other."""
        return [(event.value, event.writer) for event in self.of(VariableSet) if event.name == name]

    @property
    def values(self) -> Mapping[str, Any]:
        return self.state.variables

    @property
    def start(self) -> Mapping[str, Any]:
        """The values that came from outside when the run began."""
        return self.of(RunStarted)[0].values

    @property
    def speakers(self) -> list[str]:
        return [request.agent for request in self.requests]

    @property
    def ways(self) -> list[tuple[str, str]]:
        return [(event.source, event.target) for event in self.of(HandedOff)]

    def prompt(self, agent: str, number: int = 0) -> str:
        """What an agent was told before the conversation, at one of its calls."""
        asked = [request for request in self.requests if request.agent == agent][number]
        return "\n".join(
            str(message["content"]) for message in asked.messages if message["role"] == "system"
        )


def agents(*names: str, **prompts: str) -> dict[str, Any]:
    """Return an agents.json; an agent may have a prompt."""
    listed = [{"agent_name": name} for name in names]
    listed += [
        {"agent_name": name, "prompt_sections": [{"id": "role", "content": text}]}
        for name, text in prompts.items()
    ]
    return {"agents": listed}


def variables(
    definitions: Mapping[str, Any], exposure: Mapping[str, Iterable[str]] | None = None
) -> dict[str, Any]:
    """Return a context_variables.json in the shape of seed 000."""
    listed = {agent: {"variables": list(names)} for agent, names in (exposure or {}).items()}
    return {"context_variables": {"definitions": dict(definitions), "agents": listed}}


def handoffs(*rules: tuple[str, str] | tuple[str, str, str]) -> dict[str, Any]:
    """Return a handoffs.json of source, target and perhaps a condition."""
    keys = ("source_agent", "target_agent", "condition")
    return {"handoff_rules": [dict(zip(keys, rule, strict=False)) for rule in rules]}


def tools(*functions: str, agent: str, file: str = "desk.py", ui: Iterable[str] = ()) -> Any:
    """Return a tools.json in which one agent has all tools; those in `ui` ask a person."""
    common = {"agent": agent, "file": file, "description": "As its name says."}
    shown = {"component": "Panel", "mode": "inline"}
    listed = [{"function": function, "tool_type": "Agent_Tool", **common} for function in functions]
    asks = {"tool_type": "UI_Tool", "ui": shown, "response_schema": {"type": "object"}}
    listed += [{"function": item, **asks, **common} for item in ui]
    return {"tools": listed}


def desk(*functions: str, agent: str, ui: Iterable[str] = (), code: str = DESK) -> dict[str, Any]:
    """Return the files that give an agent tools: those of the desk, or others."""
    return {"tools": tools(*functions, agent=agent, ui=ui), "tools/desk.py": code}


def static(value: Any, type_: str = "string") -> dict[str, Any]:
    return {"type": type_, "source": {"type": "static", "value": value}}


def environment(env_var: str, default: Any = None, type_: str = "boolean") -> dict[str, Any]:
    source = {"type": "environment", "env_var": env_var, "default": default}
    return {"type": type_, "source": source}


def database(collection: str, type_: str = "string", **source: Any) -> dict[str, Any]:
    found = {"search_by": "enterprise_id", "database_name": "autogen_ai_agents", **source}
    return {"type": type_, "source": {"type": "database", "collection": collection, **found}}


def derived(default: Any, *triggers: Any, type_: str = "boolean") -> dict[str, Any]:
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source}


def says(agent: str, equals: str, **more: Any) -> dict[str, Any]:
    """Return a trigger that waits for words of an agent."""
    return {"type": "agent_text", "agent": agent, "match": {"equals": equals}, **more}


def answers(tool: str, key: str) -> dict[str, Any]:
    """Return a trigger that takes a value from the answer to a tool."""
    return {"type": "ui_response", "tool": tool, "response_key": key}


def answer(value: Any, scope: Scope = ADA) -> Step:
    """Answer the question that a run waits with."""

    async def step(host: Host, run: str) -> None:
        (request,) = await host.requests(scope=scope, run=run)
        await host.deliver(run, Answer(request.id, value), scope=scope)

    return step


def say(text: str, scope: Scope = ADA) -> Step:
    """Say something to the agent that waits for it."""

    async def step(host: Host, run: str) -> None:
        await host.deliver(run, UserMessage(text), scope=scope)

    return step


def write_package(workspace: Path, files: Files, name: str = NAME) -> Path:
    """Write a package into a workspace: text as it is, everything else as JSON.

    Names are those of files; the stem alone means a JSON file.
    """
    first = str(files["agents"]["agents"][0]["agent_name"])
    orchestrator = {"workflow_name": name, "initial_agent": first, **files.get("orchestrator", {})}
    folder = workspace / "workflows" / name
    for file, content in {**files, "orchestrator": orchestrator}.items():
        path = folder / (file if "." in file else f"{file}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        path.write_text(text, encoding="utf-8")
    return folder


def findings(workspace: Path, files: Files, profile: Any = "development") -> list[Finding]:
    """Return what the checker says about a package."""
    return list(review(write_package(workspace, files), profile=profile).findings)


def errors(workspace: Path, files: Files, profile: Any = "development") -> list[tuple[str, str]]:
    """Return what keeps a package from running: codes and words."""
    said = findings(workspace, files, profile)
    return [(finding.code, finding.message) for finding in said if finding.severity == "error"]


async def store(workspace: Path, documents: Iterable[Stored], scope: Scope = ADA) -> None:
    """Put documents of a tenant into the workspace: collection, database, document."""
    kept = await open_documents(workspace, {})
    try:
        for number, (collection, database, document) in enumerate(documents):
            key = {"_id": document.get("_id", f"d{number}")}
            await kept.put(scope, Collection(collection, database), key, document)
    finally:
        await kept.close()


async def opened(workspace: Path, model: ScriptedModel, environment: Mapping[str, str]) -> Host:
    """Open the host of a workspace whose agents are answered for by a script."""
    settings = {"WEFT_MODEL": "you", "WEFT_DURABILITY": "normal", **environment}
    return await open_host(workspace, environment=settings, person=model.reply)


async def read(host: Host, run: str, model: ScriptedModel, scope: Scope = ADA) -> Played:
    """Read a run back when it rests."""
    row = await host.settled(run, scope=scope)
    events = [event async for event in host.events(run, scope=scope) if isinstance(event, Event)]
    return Played(row, await host.state(run, scope=scope), events, list(model.requests))


def play(
    workspace: Path,
    files: Files,
    script: Script,
    *,
    message: str | None = "hello",
    environment: Mapping[str, str] | None = None,
    documents: Sequence[Stored] = (),
    after: Iterable[Step] = (),
    scope: Scope = ADA,
) -> Played:
    """Write a package and run it; when it rests, take each step and let it rest again."""
    write_package(workspace, files)
    model = ScriptedModel(script)

    async def scenario() -> Played:
        if documents:
            await store(workspace, documents, scope)
        async with await opened(workspace, model, environment or {}) as host:
            run = await host.start(NAME, scope=scope, message=message)
            for step in after:
                await host.settled(run, scope=scope)
                await step(host, run)
            return await read(host, run, model, scope)

    return finish(scenario())


def finish(scenario: Awaitable[Any]) -> Any:
    """Play a scenario, and do not wait for ever."""

    async def limited() -> Any:
        async with asyncio.timeout(30):
            return await scenario

    return asyncio.run(limited())
