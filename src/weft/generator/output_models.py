"""What the agents of the second half reply with, as section 13 of the design has it.

Six of the outputs are the contents of a package file, in the wrapper keys of the design. The other
three are files of code. Where a plan has several workflows, the keys of an output describe the
first one, and `more` has the same keys for each of the others, by its name.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from weft.packages.layout import ContextVariables
from weft.spec.agents import Agent, Handoff
from weft.spec.orchestrator import Orchestrator
from weft.spec.part import JsonMap, Name, Part, Text
from weft.spec.tools import Hook, HookType, LifecycleTool, Tool
from weft.spec.type_field import OutputBinding, OutputModel

#: Where a plan has several workflows: the outputs for all but the first, by workflow.
MORE: Final = "more"

_CODE = r"(tools/([A-Z][A-Za-z0-9]*\.jsx|[a-z][a-z0-9_]*\.py)|hooks/[a-z][a-z0-9_]*\.py)"


class _Output(Part):
    more: dict[Name, JsonMap] | None = None


class ToolsManifestOutput(_Output):
    """13.1: the tools, as in tools.json."""

    tools: tuple[Tool, ...]
    lifecycle_tools: tuple[LifecycleTool, ...]


class ContextVariablesPlanOutput(_Output):
    """13.2: the variables, as in context_variables.json."""

    plan: ContextVariables = Field(alias="ContextVariablesPlan")


class RuntimeAgentsOutput(_Output):
    """13.3: the agents, as in agents.json."""

    agents: tuple[Agent, ...]


class HandoffRulesOutput(_Output):
    """13.4: the rules, as in handoffs.json."""

    handoff_rules: tuple[Handoff, ...]


class OrchestrationConfigOutput(Orchestrator):
    """13.5: the workflow as a whole, as in orchestrator.json."""

    more: dict[Name, JsonMap] | None = None


class StructuredModelsOutput(_Output):
    """13.6: the models and their agents, as in structured_outputs.json."""

    models: tuple[OutputModel, ...]
    registry: tuple[OutputBinding, ...]


class CodeFile(Part):
    """A file of code, and the libraries that must be installed for it."""

    filename: Annotated[str, StringConstraints(pattern=rf"^{_CODE}$")]
    content: Text
    requirements: tuple[Name, ...] = Field(default=(), alias="installRequirements")


class UIToolsFilesOutput(_Output):
    """13.7: components, and the Python side of what people are asked."""

    tools: tuple[CodeFile, ...]


class AgentToolsFilesOutput(_Output):
    """13.8: the tools that agents call."""

    tools: tuple[CodeFile, ...]


class HookFile(CodeFile):
    """A file of hooks; `trigger` says when its function is called, unless `hooks` does."""

    trigger: HookType | None = None
    integration: Name | None = None


class HookFilesOutput(_Output):
    """13.9: the code of hooks, and when they are called, as in hooks.json."""

    hook_files: tuple[HookFile, ...]
    hooks: tuple[Hook, ...] = ()


class DownloadRequestOutput(Part):
    """13.10: the package is ready."""

    agent_message: Text


@dataclass(frozen=True, slots=True)
class OutputForm:
    """What the output of an agent is: its model, and the package file whose contents it has."""

    model: type[Part]
    #: tools.json and so on; "" for code.
    stem: str = ""
    #: The key of the list of files; "" if there is none.
    files: str = ""


FORMS: Final = {
    "ToolsManagerAgent": OutputForm(ToolsManifestOutput, "tools"),
    "ContextVariablesAgent": OutputForm(ContextVariablesPlanOutput, "context_variables"),
    "HandoffsAgent": OutputForm(HandoffRulesOutput, "handoffs"),
    "StructuredOutputsAgent": OutputForm(StructuredModelsOutput, "structured_outputs"),
    "AgentsAgent": OutputForm(RuntimeAgentsOutput, "agents"),
    "OrchestratorAgent": OutputForm(OrchestrationConfigOutput, "orchestrator"),
    "UIFileGenerator": OutputForm(UIToolsFilesOutput, files="tools"),
    "AgentToolsFileGenerator": OutputForm(AgentToolsFilesOutput, files="tools"),
    "HookAgent": OutputForm(HookFilesOutput, "hooks", "hook_files"),
}
