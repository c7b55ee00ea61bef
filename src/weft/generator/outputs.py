"""Outputs: what each agent of the second half reports of a draft, in the shapes of 13.1 to 13.10.

A draft is one workflow as a whole; these are views of its parts. A source that the seed does not
know, a constant or a file, is reported as the setting it amounts to.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from weft.engine.conversation.routing import reply_limit, startup_mode
from weft.errors import UsageError
from weft.findings import Json
from weft.generator.draft import Draft
from weft.generator.output_models import (
    AgentToolsFilesOutput,
    CodeFile,
    ComputedValueSource,
    ConfigSource,
    ContextVariablesPlan,
    ContextVariablesPlanOutput,
    DataEntitySource,
    DataReferenceSource,
    DownloadRequestOutput,
    ExternalCallSource,
    HandoffRule,
    HandoffRulesOutput,
    HookFile,
    HookFilesOutput,
    LifecycleEntry,
    OrchestrationConfigOutput,
    PlannedSource,
    PythonFile,
    RuntimeAgent,
    RuntimeAgentsOutput,
    ShownAs,
    StateSource,
    StructuredModelsOutput,
    ToolEntry,
    ToolsManifestOutput,
    UIToolsFilesOutput,
    VariableDefinition,
)
from weft.generator.steps import STEP_OF
from weft.spec.part import Part
from weft.spec.tools import UiTool
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    DerivedSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
    StaticSource,
    Variable,
)

_File = TypeVar("_File", bound=CodeFile)


def output_of(agent: str, draft: Draft) -> dict[str, Json]:
    """Return what an agent of the second half reports of a draft, as its output model has it.

    Raises UsageError for an agent that makes no part of a draft.
    """
    output = STEP_OF[agent].output if agent in STEP_OF else None
    if output not in _VIEWS:
        raise UsageError(f"{agent} reports nothing of a draft")
    return _VIEWS[output](draft).model_dump(mode="json", by_alias=True)


def _manifest(draft: Draft) -> ToolsManifestOutput:
    nothing = ShownAs(component=None, mode=None)
    return ToolsManifestOutput(
        tools=tuple(
            ToolEntry(
                agent=it.agent,
                file=it.file,
                function=it.function,
                description=it.description,
                tool_type=it.tool_type,
                auto_invoke=it.auto_invoke,
                ui=ShownAs(component=it.ui.component, mode=it.ui.mode)
                if isinstance(it, UiTool)
                else nothing,
            )
            for it in draft.spec.tools
        ),
        lifecycle_tools=tuple(
            LifecycleEntry.model_validate(
                {
                    **it.model_dump(exclude={"on_error"}),
                    "auto_invoke": None,
                    "ui": nothing,
                }
            )
            for it in draft.spec.lifecycle_tools
        ),
    )


def _variables(draft: Draft) -> ContextVariablesPlanOutput:
    definitions = {
        name: VariableDefinition(type=it.type, description=it.description, source=_source(name, it))
        for name, it in draft.spec.variables.items()
    }
    shown = ContextVariablesPlan(definitions=definitions, agents=draft.spec.exposure)
    return ContextVariablesPlanOutput(ContextVariablesPlan=shown)


def _source(name: str, variable: Variable) -> PlannedSource:
    match variable.source:
        case DatabaseSource() as it:
            found = it.query_template or {it.search_by or "": f"{{{it.search_by}}}"}
            return DataReferenceSource(
                type="data_reference",
                database=it.database,
                collection=it.collection,
                query_template=found,
                fields=it.fields or ((it.field,) if it.field else ()),
                refresh_strategy=it.refresh_strategy,
            )
        case EntitySource() as it:
            return DataEntitySource(
                type="data_entity",
                database=it.database,
                collection=it.collection,
                search_by=it.search_by,
                schema=it.document,
                write_strategy=it.write_strategy,
            )
        case ComputedSource() as it:
            return ComputedValueSource.model_validate(it.model_dump())
        case DerivedSource() as it:
            several = it.triggers if len(it.triggers) > 1 else None
            return StateSource(
                type="state",
                initial=it.default,
                transitions=it.transitions,
                trigger=several or (it.triggers[0] if it.triggers else None),
                persist=it.persist,
            )
        case ExternalSource() as it:
            kept = set(ExternalCallSource.model_fields)
            return ExternalCallSource.model_validate(it.model_dump(include=kept))
        case EnvironmentSource() as it:
            given = (it.env_var, it.default, it.required)
        case StaticSource() as it:
            given = (name.upper(), it.value, False)
        case it:
            given = (name.upper(), it.default, False)
    env_var, default, required = given
    return ConfigSource(type="config", env_var=env_var, default_value=default, required=required)


def _agents(draft: Draft) -> RuntimeAgentsOutput:
    return RuntimeAgentsOutput(
        agents=tuple(
            RuntimeAgent(
                agent_name=it.agent_name,
                prompt_sections=it.prompt_sections,
                max_consecutive_auto_reply=reply_limit(it),
                auto_tool_mode=it.auto_tool_mode,
                structured_outputs_required=it.structured_outputs_required,
            )
            for it in draft.spec.agents
        )
    )


def _handoffs(draft: Draft) -> HandoffRulesOutput:
    kept = set(HandoffRule.model_fields)
    return HandoffRulesOutput(
        handoff_rules=tuple(
            HandoffRule.model_validate(it.model_dump(include=kept)) for it in draft.spec.handoffs
        )
    )


def _orchestration(draft: Draft) -> OrchestrationConfigOutput:
    it = draft.spec.orchestrator
    everyone = tuple(one.agent_name for one in draft.spec.agents)
    return OrchestrationConfigOutput(
        workflow_name=it.workflow_name,
        max_turns=it.max_turns,
        human_in_the_loop=it.human_in_the_loop,
        startup_mode=startup_mode(it),
        orchestration_pattern=it.orchestration_pattern,
        initial_message_to_user=it.initial_message_to_user,
        initial_message=it.initial_message,
        initial_agent=it.initial_agent,
        visual_agents=everyone if it.visual_agents is None else it.visual_agents,
        runtime_extensions=it.runtime_extensions,
    )


def _models(draft: Draft) -> StructuredModelsOutput:
    return StructuredModelsOutput(models=draft.spec.models, registry=draft.spec.registry)


def _ui_files(draft: Draft) -> UIToolsFilesOutput:
    asking = [it for it in draft.spec.tools if isinstance(it, UiTool)]
    names = {f"{it.ui.component}.jsx" for it in asking} | {it.file for it in asking}
    return UIToolsFilesOutput(tools=tuple(_files(draft, names, CodeFile)))


def _tool_files(draft: Draft) -> AgentToolsFilesOutput:
    asking = {it.file for it in draft.spec.tools if isinstance(it, UiTool)}
    # Beside the tools: functions that compute variables.
    files = (path.removeprefix("tools/") for path in draft.code if path.startswith("tools/"))
    named = {it for it in files if it.endswith(".py")} - asking
    return AgentToolsFilesOutput(tools=tuple(_files(draft, named, PythonFile)))


def _files(draft: Draft, names: set[str], kind: type[_File]) -> Iterator[_File]:
    """Yield those files that a draft has, each with what it imports of the requirements."""
    for path in sorted({f"tools/{name}" for name in names} & set(draft.code)):
        text = draft.code[path]
        needed = [
            it
            for it in draft.requirements
            if path.endswith(".py")
            and re.search(rf"^\s*(?:import|from)\s+{_module(it)}\b", text, re.MULTILINE)
        ]
        yield kind(filename=path, content=text, installRequirements=tuple(needed))


def _module(requirement: str) -> str:
    return re.escape(re.split(r"[^A-Za-z0-9_-]", requirement)[0].replace("-", "_"))


def _hook_files(draft: Draft) -> HookFilesOutput:
    first = {f"hooks/{it.file}": it for it in reversed(draft.spec.hooks)}
    return HookFilesOutput(
        hook_files=tuple(
            HookFile(
                filename=path,
                content=draft.code[path],
                trigger=it.hook_type,
                integration=it.integration,
            )
            for path, it in sorted(first.items())
            if path in draft.code
        )
    )


def _download(draft: Draft) -> DownloadRequestOutput:
    return DownloadRequestOutput(agent_message=f"{draft.name} is ready for download.")


_VIEWS: Final[dict[str | None, Callable[[Draft], Part]]] = {
    "ToolsManifestOutput": _manifest,
    "ContextVariablesPlanOutput": _variables,
    "RuntimeAgentsOutput": _agents,
    "HandoffRulesOutput": _handoffs,
    "OrchestrationConfigOutput": _orchestration,
    "StructuredModelsOutput": _models,
    "UIToolsFilesOutput": _ui_files,
    "AgentToolsFilesOutput": _tool_files,
    "HookFilesOutput": _hook_files,
    "DownloadRequestOutput": _download,
}
