"""Code that a model wrote, put over the plain files of a package as far as it passes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from weft.findings import Json
from weft.generator.code.ui import response_fields
from weft.generator.draft import Draft, Replaced
from weft.generator.enrich.allowed import LIBRARIES
from weft.generator.enrich.comparing import LEFT_OUT, NO_FILE, TWICE, Comparison, as_list, as_object
from weft.generator.enrich.jsx_code import jsx_faults
from weft.generator.enrich.python_code import imported_libraries, python_faults
from weft.generator.outputs import output_of
from weft.spec.tools import Hook, LifecycleTool

#: Where an agent lists its files.
LISTED: Final = {
    "UIFileGenerator": "tools",
    "AgentToolsFileGenerator": "tools",
    "HookAgent": "hook_files",
}
_REQUIREMENTS: Final = "installRequirements"


def overlay_files(draft: Draft, agent: str, given: Json) -> tuple[Draft, tuple[Replaced, ...]]:
    """Put the files of a model into a draft, with the libraries they use."""
    comparison = Comparison(agent, lambda _: None)
    own = _own(draft, agent)
    code = dict(draft.code)
    requirements = list(draft.requirements)
    seen: set[str] = set()
    for entry in _entries(given, comparison):
        path = _path(entry.get("filename"), own)
        content = entry.get("content")
        if path is None or path in seen:
            why = NO_FILE if path is None else TWICE
            comparison.report(str(entry.get("filename"))[:200], why)
        elif not isinstance(content, str):
            comparison.report(path, "its content is no text")
        else:
            wanted = _libraries(path, entry.get(_REQUIREMENTS), comparison)
            faults = [] if content == own[path] else _faults(draft, path, content, wanted)
            if faults:
                comparison.report(path, "; ".join(faults[:3]))
            else:
                code[path] = content
                used = imported_libraries(content, wanted) if path.endswith(".py") else []
                requirements += [it for it in used if it not in requirements]
        seen.update({path} if path else ())
    for path in own:
        if path not in seen:
            comparison.report(path, LEFT_OUT)
    made = replace(draft, code=code, requirements=tuple(requirements))
    return made, tuple(comparison.replaced)


def _entries(given: Json, comparison: Comparison) -> Iterator[Mapping[str, Json]]:
    listed = as_list(given)
    if listed is None:
        comparison.report("the whole reply", "it has no list of files")
    for it in listed or ():
        entry = as_object(it)
        if entry is not None:
            yield entry
        else:
            comparison.report("a file", "it is no object")


def _own(draft: Draft, agent: str) -> dict[str, str]:
    """Return the plain files that an agent makes: those it is shown."""
    listed = as_list(output_of(agent, draft)[LISTED[agent]]) or []
    paths = [str(entry["filename"]) for it in listed if (entry := as_object(it)) is not None]
    return {path: draft.code[path] for path in paths}


def _path(name: Json, own: Mapping[str, str]) -> str | None:
    """Return the plain file that a name means, with its folder or without."""
    if not isinstance(name, str):
        return None
    bare = [path for path in own if PurePosixPath(path).name == name]
    return name if name in own else bare[0] if bare else None


def _libraries(path: str, given: Json, comparison: Comparison) -> list[str]:
    """Return the libraries that a file may require."""
    named = as_list(given) or []
    if given is not None and as_list(given) is None:
        comparison.report(f"{path}: {_REQUIREMENTS}", "it is no list")
    if named and path.endswith(".jsx"):
        why = "the page draws components with what it has; nothing is installed for them"
        comparison.report(f"{path}: {_REQUIREMENTS}", why)
        return []
    wanted: list[str] = []
    for it in named:
        if isinstance(it, str) and it in LIBRARIES:
            wanted.append(it)
        else:
            comparison.report(f"{path}: {str(it)[:60]}", "this library may not be required")
    return wanted


def _faults(draft: Draft, path: str, content: str, wanted: list[str]) -> list[str]:
    if path.endswith(".jsx"):
        component = PurePosixPath(path).stem
        tools = [it for it in draft.shapes if it.kind == "ui" and it.component == component]
        fields = (it.name for tool in tools for it in response_fields(tool, draft.spec))
        return jsx_faults(content, component, list(dict.fromkeys(fields)))
    readable = [*_readable(draft, path)]
    return python_faults(content, draft.code[path], variables=readable, requirements=wanted)


def _readable(draft: Draft, path: str) -> Iterator[str]:
    """Yield the variables that every agent may read whose code stands in a file; no secrets."""
    spec = draft.spec
    name = PurePosixPath(path).name
    declared: tuple[LifecycleTool | Hook, ...] = (*spec.lifecycle_tools, *spec.hooks)
    agents = {it.agent for it in draft.shapes if it.file == name}
    agents |= {it.agent for it in declared if PurePosixPath(it.file).name == name and it.agent}
    for variable, it in spec.variables.items():
        if not it.secret and (it.readers is None or agents <= {*it.readers}):
            yield variable
