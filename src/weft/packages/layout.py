"""The files of a package: their kinds, their contents, and the place of each part of a spec."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from pydantic import Field

from weft.findings import Path
from weft.spec.agents import Agent, Handoff
from weft.spec.board import Board
from weft.spec.flow import Flow
from weft.spec.orchestrator import Orchestrator
from weft.spec.part import Name, Part
from weft.spec.tools import Hook, LifecycleTool, McpServer, Tool
from weft.spec.type_field import OutputBinding, OutputModel
from weft.spec.variables import Variable

#: Every file may have any of these endings; the first is the one written by default.
SUFFIXES: Final = (".json", ".yaml", ".yml")

#: Folders of a package that hold code, and the endings that count as code there.
CODE_FOLDERS: Final = {"tools": (".py", ".jsx"), "hooks": (".py",)}

#: The folder of a package that holds its scenarios, and the name of their schema.
TESTS: Final = "tests"
SCENARIO: Final = "scenario"

#: Endings that count as code in the package folder itself.
ROOT_CODE: Final = (".py",)


class AgentsFile(Part):
    """agents.json: the agents."""

    agents: tuple[Agent, ...]


class AgentExposure(Part):
    """What one agent sees."""

    variables: tuple[Name, ...] = ()


class ContextVariables(Part):
    """Every variable, and which agent sees which."""

    definitions: dict[Name, Variable] = Field(default={}, description="The variables by name.")
    agents: dict[Name, AgentExposure] = Field(
        default={}, description="Which variables are in which agent's prompt."
    )


class ContextVariablesFile(Part):
    """context_variables.json: the shared context."""

    context_variables: ContextVariables


class HandoffsFile(Part):
    """handoffs.json: the handoff rules."""

    handoff_rules: tuple[Handoff, ...]


class ToolsFile(Part):
    """tools.json: tools and tool servers."""

    tools: tuple[Tool, ...] = ()
    lifecycle_tools: tuple[LifecycleTool, ...] = ()
    mcp_servers: tuple[McpServer, ...] = Field(
        default=(), description="Servers whose tools agents may use."
    )


class HooksFile(Part):
    """hooks.json: functions that observe or change messages and state."""

    hooks: tuple[Hook, ...]


class StructuredOutputsFile(Part):
    """structured_outputs.json: the shapes of replies."""

    models: tuple[OutputModel, ...] = ()
    registry: tuple[OutputBinding, ...] = Field(
        default=(), description="Which agent's replies fit which model; null means free text."
    )


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind of declared file."""

    stem: str
    model: type[Part]
    #: The path in the file of each field of WorkflowSpec that it contains.
    holds: dict[str, Path]
    required: bool = False
    #: Written even when it holds nothing, so that the set is complete.
    always: bool = True
    #: The fields that are omitted when empty.
    seldom: frozenset[str] = frozenset()


FILE_KINDS: Final[dict[str, FileKind]] = {
    kind.stem: kind
    for kind in (
        FileKind("orchestrator", Orchestrator, {"orchestrator": ()}, required=True),
        FileKind("agents", AgentsFile, {"agents": ("agents",)}, required=True),
        FileKind(
            "context_variables",
            ContextVariablesFile,
            {
                "variables": ("context_variables", "definitions"),
                "exposure": ("context_variables", "agents"),
            },
        ),
        FileKind("handoffs", HandoffsFile, {"handoffs": ("handoff_rules",)}),
        FileKind(
            "tools",
            ToolsFile,
            {
                "tools": ("tools",),
                "lifecycle_tools": ("lifecycle_tools",),
                "mcp_servers": ("mcp_servers",),
            },
            seldom=frozenset({"mcp_servers"}),
        ),
        FileKind("hooks", HooksFile, {"hooks": ("hooks",)}, always=False),
        FileKind(
            "structured_outputs",
            StructuredOutputsFile,
            {"models": ("models",), "registry": ("registry",)},
        ),
        FileKind("flow", Flow, {"flow": ()}, always=False),
        FileKind("board", Board, {"board": ()}, always=False),
    )
}

#: The file that holds each field of WorkflowSpec.
KIND_OF_FIELD: Final[dict[str, FileKind]] = {
    field: kind for kind in FILE_KINDS.values() for field in kind.holds
}


def likely_kind(name: str) -> str | None:
    """Return the kind of declared file that a file of this name is, or most likely is.

    >>> likely_kind("Handoffs.JSON"), likely_kind("agent.yaml"), likely_kind("notes.json")
    ('handoffs', 'agents', None)
    """
    stem, dot, suffix = name.lower().rpartition(".")
    if dot + suffix not in SUFFIXES:
        return None
    close = get_close_matches(stem.replace("-", "_"), FILE_KINDS, n=1, cutoff=0.8)
    return close[0] if close else None


def file_path(spec_path: Path, *, entry: bool = False) -> tuple[FileKind, Path]:
    """Translate a path in the spec to the file that contains it and the path in that file.

    `entry` means the entry with its key, where the value alone is deeper in the file.
    """
    field, *rest = spec_path
    kind = KIND_OF_FIELD[str(field)]
    inner = kind.holds[str(field)]
    if field == "exposure" and rest and not (entry and len(rest) == 1):
        agent, *positions = rest
        return kind, (*inner, agent, "variables", *positions)
    return kind, (*inner, *rest)
