"""Stores the parts of the package, each as its agent returned it. Nothing of them is executed."""

from collections.abc import Iterator

from weft import Context
from weft.cli.streams import counted
from weft.generator.judging import accepted_files, accepted_repair
from weft.generator.steps import REPLACED, STEP_OF

#: The entries of parts by the keys of their lists.
_KINDS = {
    "tools": "tool",
    "lifecycle_tools": "lifecycle tool",
    "variables": "variable",
    "handoff_rules": "handoff rule",
    "models": "model",
    "agents": "agent",
    "hook_files": "file",
}


def _keep(
    agent: str, output: dict[str, object], context_variables: Context
) -> dict[str, list[str]]:
    """Store a part; one whose form is wrong is refused once. Note why it is not by the model."""
    instead_of = output.pop(REPLACED, None)
    part = accepted_files(agent, output, again=context_variables.get_bool("part_refused"))
    context_variables["part_refused"] = False
    context_variables.set(STEP_OF[agent].writes, part)
    if instead_of:
        context_variables.set("compiled_because", f"{agent}: {instead_of}")
    return {"written": list(_counts(part))}


def _counts(part: dict[str, object]) -> Iterator[str]:
    """Yield how many entries a part has, by their kind."""
    plan = part.get("ContextVariablesPlan")
    lists = {"variables": plan.get("definitions", {})} if isinstance(plan, dict) else part
    for key, entries in lists.items():
        if key in _KINDS and isinstance(entries, list | dict) and entries:
            is_file = isinstance(entries, list) and "filename" in entries[0]
            yield counted(len(entries), "file" if is_file else _KINDS[key])


def tools_manifest(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the tools."""
    return _keep("ToolsManagerAgent", output, context_variables)


def context_variables_plan(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the variables."""
    return _keep("ContextVariablesAgent", output, context_variables)


def handoff_rules(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the handoff rules."""
    return _keep("HandoffsAgent", output, context_variables)


def structured_models(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the models of structured replies."""
    return _keep("StructuredOutputsAgent", output, context_variables)


def runtime_agents(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the agents."""
    return _keep("AgentsAgent", output, context_variables)


def orchestration_config(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the settings of the workflow."""
    return _keep("OrchestratorAgent", output, context_variables)


def ui_files(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the components, and the code of UI tools."""
    return _keep("UIFileGenerator", output, context_variables)


def tool_files(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the code of the other tools."""
    return _keep("AgentToolsFileGenerator", output, context_variables)


def hook_files(context_variables: Context, **output: object) -> dict[str, list[str]]:
    """Store the code of the hooks."""
    return _keep("HookAgent", output, context_variables)


def package_repair(
    parts: dict[str, object],
    answers: dict[str, object],
    context_variables: Context,
    instead_of: str | None = None,
) -> dict[str, list[str]]:
    """Put repaired parts in place, and store the answers to questions.

    A repair that changes nothing is the last one.
    """
    replaced, answered = accepted_repair(parts, answers, context_variables)
    for agent, part in replaced.items():
        context_variables.set(STEP_OF[agent].writes, part)
    known = context_variables.get_dict("finding_answers")
    context_variables.set("finding_answers", {**known, **answered})
    changes = bool(replaced or answered) and not instead_of
    context_variables.set("offer_state", "open" if changes else "final")
    if not changes:
        context_variables.set("repair_round", context_variables.get_int("repair_round") - 1)
    return {"repaired": list(replaced), "answered": list(answered)}
