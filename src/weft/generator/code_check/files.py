"""Checks a file of code against the declarations of its package."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, cast

from weft.check.code.references import code_references
from weft.check.subject import Subject
from weft.generator.code_check.allowed import LIBRARIES
from weft.generator.code_check.jsx_code import jsx_faults
from weft.generator.code_check.python_code import Declared, python_faults
from weft.spec.tools import AgentTool, Hook, LifecycleTool, UiTool
from weft.spec.triggers import ToolResponseTrigger, UiResponseTrigger
from weft.spec.variables import DerivedSource, EntitySource
from weft.spec.workflow import WorkflowSpec

#: A function that a package declares.
Function = AgentTool | UiTool | LifecycleTool | Hook
_SET: Final = (DerivedSource, EntitySource)


def code_faults(
    spec: WorkflowSpec, path: str, text: str, requirements: tuple[str, ...] = ()
) -> list[str]:
    """Return why a text cannot be this file of a package; empty if it can be."""
    unknown = [name for name in requirements if name not in LIBRARIES]
    refused = [f"the library {name[:60]} is not allowed" for name in unknown]
    if not path.endswith(".jsx"):
        return [*refused, *python_faults(text, _declared(spec, path, requirements))]
    component = PurePosixPath(path).stem
    tools = [tool for tool in _asking(spec) if tool.ui.component == component]
    if not tools:
        return [f"no UI tool has the component {component}"]
    keys, needed = answer_keys(spec, tools[0])
    return [*refused, *jsx_faults(text, component, keys, needed)]


def functions_in(spec: WorkflowSpec, path: str) -> dict[str, Function | None]:
    """Return the functions of a file that a run calls; None for one that a variable names."""
    folder, _, name = path.partition("/")
    entries = spec.hooks if folder == "hooks" else (*spec.tools, *spec.lifecycle_tools)
    module = path.removesuffix(".py").replace("/", ".")
    subject = Subject(spec)
    references = (
        found.reference.partition(":")
        for root in ("variables", "orchestrator")
        for found in code_references(root, subject)
    )
    named = {function: None for file, _, function in references if file == module}
    own = {
        entry.function: entry for entry in entries if entry.file.removeprefix(f"{folder}/") == name
    }
    return {**named, **own}


def answer_keys(spec: WorkflowSpec, tool: UiTool) -> tuple[list[str], list[str]]:
    """Return the keys that an answer may have, and those that it must have."""
    schema = cast("Mapping[str, Any]", tool.response_schema or {})
    keys = list(cast("Mapping[str, Any]", schema.get("properties") or {}))
    if keys:
        return keys, [key for key in keys if key in schema.get("required", keys)]
    triggers = (entry for entry in _triggers(spec) if isinstance(entry, UiResponseTrigger))
    keys = [
        entry.response_key.partition(".")[0] for entry in triggers if entry.tool == tool.function
    ]
    return keys, keys


def _declared(spec: WorkflowSpec, path: str, requirements: tuple[str, ...]) -> Declared:
    functions = functions_in(spec, path)
    agents = {entry.agent for entry in functions.values() if entry is not None and entry.agent}
    responses = (entry for entry in _triggers(spec) if isinstance(entry, ToolResponseTrigger))
    own = [
        entry.response_key for entry in responses if entry.tool in functions and entry.response_key
    ]
    asking = {name for name, entry in functions.items() if isinstance(entry, UiTool)}
    keys = (key for tool in _asking(spec) for key in answer_keys(spec, tool)[0] if asking)
    return Declared(
        functions=frozenset(functions),
        asking=frozenset(asking),
        keys=frozenset(step for key in own for step in key.split(".")).difference(keys),
        variables=frozenset(
            name
            for name, variable in spec.variables.items()
            if not variable.secret and (variable.readers is None or agents <= {*variable.readers})
        ),
        settable=frozenset(
            name for name, variable in spec.variables.items() if isinstance(variable.source, _SET)
        ),
        requirements=frozenset(requirements),
    )


def _asking(spec: WorkflowSpec) -> Iterator[UiTool]:
    return (tool for tool in spec.tools if isinstance(tool, UiTool))


def _triggers(spec: WorkflowSpec) -> Iterator[Any]:
    for variable in spec.variables.values():
        if isinstance(variable.source, DerivedSource):
            yield from variable.source.triggers
            yield from (entry.trigger for entry in variable.source.transitions)
