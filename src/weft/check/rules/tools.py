"""Family TOOL: every declared tool has code, and the code can be called as declared."""

import builtins
from collections.abc import Iterator
from typing import Final

from weft.check.code.facts import code_of, reached
from weft.check.code.functions import CONTEXT_NAMES, PLAIN_NAME, Parameter
from weft.check.code.modules import UI_CALL, Module
from weft.check.rules.declared import (
    all_entries,
    all_tool_entries,
    lifecycle_entries,
    misfits_at,
    missing_built_ins,
    missing_files,
    missing_functions,
    paths_outside,
    tool_entries,
    unused_files,
    with_code,
)
from weft.check.spelling import did_you_mean, listed
from weft.check.subject import Hit, Subject, rule
from weft.findings import Fix, Path, Place, SetValue
from weft.ids import nearest
from weft.spec.tools import UiTool

#: How long a description may be; a model reads all of them before every reply.
MAX_DESCRIPTION: Final = 140


@rule("TOOL001", "tools", "lifecycle_tools", "code")
def file_exists(subject: Subject) -> Iterator[Hit]:
    return missing_files(subject, all_tool_entries(subject))


@rule("TOOL002", "tools", "lifecycle_tools", "code")
def function_exists(subject: Subject) -> Iterator[Hit]:
    yield from missing_functions(all_tool_entries(subject))
    yield from missing_built_ins(subject)


def functions_meant(subject: Subject) -> set[str]:
    """Return the functions that tools and hooks misspell, as the code has them.

    TOOL002 and HOOK002 report these. Whoever else names such a function is right.
    """
    near = [
        nearest(entry.declared.function, entry.module.functions)
        for entry in all_entries(subject)
        if entry.module and not entry.module.defines(entry.declared.function)
    ]
    return {name for name in near if name}


@rule("TOOL003", "code")
def file_parses(subject: Subject) -> Iterator[Hit]:
    for file, fault in code_of(subject).faults.items():
        yield Hit(
            (),
            f"{file} is not valid Python: {fault.msg}",
            hint=("correct the file; until then nothing in it can be checked",),
            place=Place(file, max(fault.lineno or 1, 1), max(fault.offset or 1, 1)),
        )


@rule("TOOL004", "tools", "code")
def parameters_can_be_told(subject: Subject) -> Iterator[Hit]:
    seen: set[tuple[str, str]] = set()
    for entry, module, function in with_code(tool_entries(subject)):
        key = (module.path, function.name)
        if key in seen:
            continue
        seen.add(key)
        path = (*entry.path, "function")
        own = [one for one in function.parameters if one.kind in ("positional", "keyword")]
        bare = [one for one in own if not one.hinted and not one.injected]
        if bare:
            yield Hit(
                path,
                f"{function.name} has no type hint for {listed(one.name for one in bare)}",
                hint=(_type_hint(bare[0].name),),
                place=module.place(bare[0].spot),
            )
        yield from _unreadable_hints(path, module, own)


def _type_hint(name: str) -> str:
    if name in CONTEXT_NAMES:
        return f"write {name}: Context if it takes the context, or the type of the argument"
    return f"write the type, for example {name}: str"


def _unreadable_hints(path: Path, module: Module, parameters: list[Parameter]) -> Iterator[Hit]:
    """Report the type hints with a name that the file does not have."""
    for one in parameters:
        # The run fills this one whatever its hint is.
        names = sorted(one.hint_names) if one.name != PLAIN_NAME else []
        unknown = [it for it in names if not module.defines(it) and not hasattr(builtins, it)]
        if unknown:
            yield Hit(
                path,
                f"the type hint of {one.name} names {listed(unknown)}, "
                f"which {module.path} neither defines nor imports",
                hint=did_you_mean(unknown[0], module.definitions)
                or (f"import {unknown[0]}, or correct the hint",),
                severity="error",
                place=module.place(one.spot),
            )


@rule("TOOL005", "lifecycle_tools", "code")
def lifecycle_tool_can_be_called(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(lifecycle_entries(subject)):
        yield from misfits_at(entry, module, function, entry.declared.trigger)


@rule("TOOL006", "tools")
def description_fits(subject: Subject) -> Iterator[Hit]:
    for entry in tool_entries(subject):
        text, path = entry.declared.description, (*entry.path, "description")
        summary = entry.function.summary if entry.function else ""
        if not text and summary:
            # The model is then sent the docstring.
            if len(summary) > MAX_DESCRIPTION:
                yield Hit(
                    (*entry.path, "function"),
                    f"{entry.name} has no description, and the first line of its docstring has "
                    f"{len(summary)} characters, {MAX_DESCRIPTION} are the limit",
                    hint=("say in one sentence what it does and when to call it",),
                )
        elif not text.strip():
            adopt = Fix("take the first line of the docstring", (SetValue(path, summary),))
            yield Hit(
                (*entry.path, "function"),
                f"{entry.name} has no description",
                hint=("say in one sentence what it does and when to call it",),
                fix=adopt if 0 < len(summary) <= MAX_DESCRIPTION else None,
            )
        elif len(text) > MAX_DESCRIPTION:
            yield Hit(
                path,
                f"the description of {entry.declared.function} has {len(text)} characters, "
                f"{MAX_DESCRIPTION} are the limit",
                hint=("keep what it does and when to call it; the rest belongs in the prompt",),
                offset=MAX_DESCRIPTION,
                length=len(text) - MAX_DESCRIPTION,
            )


@rule(
    "TOOL007",
    "tools",
    "lifecycle_tools",
    "hooks",
    "variables",
    "orchestrator",
    "flow",
    "board",
    "code",
)
def file_is_used(subject: Subject) -> Iterator[Hit]:
    return unused_files(subject, "tools", "tools.json")


@rule("TOOL010", "tools", "code")
def ui_tool_asks(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(tool_entries(subject)):
        used = reached(subject, module.path, function.name)
        if isinstance(entry.declared, UiTool) and not any(
            UI_CALL in definition.mentions for definition in used
        ):
            yield Hit(
                (*entry.path, "function"),
                f"the UI tool {function.name} never calls {UI_CALL}",
                hint=(
                    f"call {UI_CALL} and wait for the answer",
                    "or declare it as Agent_Tool, if it asks nobody",
                ),
                place=module.place(function.spot),
            )


@rule("TOOL011", "tools", "lifecycle_tools")
def file_is_inside(subject: Subject) -> Iterator[Hit]:
    return paths_outside(subject, all_tool_entries(subject))
