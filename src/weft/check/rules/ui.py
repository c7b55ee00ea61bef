"""Family UI: components shown to users, and the use of their answers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from weft.check.answer_schema import UnknownKey, answers_refused, follow, schema_faults
from weft.check.code.facts import code_of, reachable
from weft.check.code.modules import UI_CALL, Module
from weft.check.declarations import PlacedTrigger, placed_triggers
from weft.check.rules.code import all_entries, functions_meant, tool_entries
from weft.check.rules.references import unknown_field
from weft.check.spelling import (
    agent_meant,
    did_you_mean,
    listed,
    pascal_case,
    respelling,
)
from weft.check.subject import Hit, Subject, rule
from weft.findings import Fix, Json, Place, SetValue
from weft.ids import AGENT_NAME, nearest
from weft.spec.part import JsonMap
from weft.spec.templates import references
from weft.spec.tools import UiTool
from weft.spec.triggers import UiResponseTrigger
from weft.spec.types import print_type


@rule("UI001", "tools", "code")
def answer_can_be_given(subject: Subject) -> Iterator[Hit]:
    for index, tool in _ui_tools(subject):
        path, component = ("tools", index, "ui", "component"), tool.ui.component
        meant = _meant(subject, component)
        if component in _drawn_components(subject):
            continue
        if tool.response_schema is None:
            yield Hit(
                path,
                f"the UI tool {tool.function} has neither tools/{component}.jsx "
                "nor a response_schema, so nothing can be shown",
                hint=did_you_mean(component, _drawn_components(subject))
                or ("add a response_schema: a form is made from it", "or write the component"),
                fix=respelling(path, component, _drawn_components(subject)),
            )
        elif meant:
            yield Hit(
                path,
                f"the UI tool {tool.function} has no tools/{component}.jsx, "
                f"and no tool shows tools/{meant}.jsx",
                hint=(f'did you mean "{meant}"?',),
                fix=respelling(path, component, _unshown(subject)),
                severity="warning",
            )


@rule("NAME001", "variables", "tools", affects_routes=False)
def answer_has_key(subject: Subject) -> Iterator[Hit]:
    for answer in _answers(subject):
        lost = follow(answer.schema, answer.key)
        if isinstance(lost, UnknownKey):
            path = (*answer.placed.path, "response_key")
            known = f"it has {listed(lost.known)} there" if lost.known else "it has none there"
            yield Hit(
                path,
                f"a trigger of {answer.placed.variable} takes unknown field "
                f'"{lost.step}" of the answer to {answer.tool}',
                cause=(f"according to the response_schema, {known}",),
                hint=did_you_mean(lost.step, lost.known)
                or ("add the property to the response_schema, or correct response_key",),
                fix=respelling(path, lost.step, lost.known) if lost.step == answer.key else None,
                offset=lost.offset,
                length=len(lost.step),
            )


@rule("UI003", "tools")
def schema_is_a_schema(subject: Subject) -> Iterator[Hit]:
    for index, tool in _ui_tools(subject):
        schemas = {"payload_schema": tool.payload_schema, "response_schema": tool.response_schema}
        for key, schema in schemas.items():
            for fault in schema_faults(schema or {}):
                path = ("tools", index, key, *fault.path)
                where = ".".join(str(step) for step in fault.path)
                write = (SetValue(path, fault.meant),)
                yield Hit(
                    path,
                    f"{where or key} in the {key} of {tool.function} {fault.fact}",
                    hint=(f'did you mean "{fault.meant}"?',) if fault.meant else (fault.hint,),
                    fix=Fix(f'write "{fault.meant}"', write) if fault.meant else None,
                )


@rule("NAME004", "tools")
def component_is_pascal_case(subject: Subject) -> Iterator[Hit]:
    seen: set[str] = set()
    for index, tool in _ui_tools(subject):
        name = tool.ui.component
        if AGENT_NAME.match(name) or name in seen or _is_reported(subject, tool):
            continue
        seen.add(name)
        wanted = pascal_case(name)
        yield Hit(
            ("tools", index, "ui", "component"),
            f'the component name "{name}" is not PascalCase',
            hint=(f"write {wanted}, here and as the name of its file",) if wanted else (),
        )


@rule("UI005", "code")
def component_is_exported(subject: Subject) -> Iterator[Hit]:
    for file, text in subject.code.items():
        if file.endswith(".jsx"):
            exports = list(default_exports(text))
            if len(exports) != 1:
                count = f"{len(exports)} default exports" if exports else "no default export"
                start = exports[1] if exports else 0
                line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
                yield Hit(
                    (),
                    f"{file} has {count}; exactly one is shown",
                    hint=("write export default before the component, and only there",),
                    place=Place(file, line, column),
                )


@rule("UI006", "variables", "tools")
def answer_fits_variable(subject: Subject) -> Iterator[Hit]:
    for answer in _answers(subject):
        part = follow(answer.schema, answer.key)
        # With a transition the answer triggers the change, but is not the new value.
        if part is None or isinstance(part, UnknownKey) or answer.placed.transition:
            continue
        type_ = subject.spec.variables[answer.placed.variable].type
        refused = answers_refused(type_, part)
        if refused:
            yield Hit(
                (*answer.placed.path, "response_key"),
                f'"{answer.key}" in the answer to {answer.tool} may be {refused}, '
                f"which {answer.placed.variable} does not take",
                cause=(f"the type of {answer.placed.variable} is {print_type(type_)}",),
                hint=("change the type of the variable, or what the response_schema allows",),
            )


@dataclass(frozen=True, slots=True)
class _Answer:
    """A trigger that takes part of an answer, and the schema of the answer."""

    placed: PlacedTrigger
    tool: str
    key: str
    schema: JsonMap


def _answers(subject: Subject) -> Iterator[_Answer]:
    for placed in placed_triggers(subject):
        trigger = placed.trigger
        if isinstance(trigger, UiResponseTrigger):
            tool = subject.tools.get(trigger.tool)
            if isinstance(tool, UiTool) and tool.response_schema is not None:
                yield _Answer(placed, trigger.tool, trigger.response_key, tool.response_schema)


def _ui_tools(subject: Subject) -> Iterator[tuple[int, UiTool]]:
    for index, tool in enumerate(subject.spec.tools):
        if isinstance(tool, UiTool):
            yield index, tool


def _drawn_components(subject: Subject) -> list[str]:
    files = (file for file in subject.code if file.startswith("tools/") and file.endswith(".jsx"))
    return [file.removeprefix("tools/").removesuffix(".jsx") for file in files]


def _unshown(subject: Subject) -> set[str]:
    return {*_drawn_components(subject)} - {tool.ui.component for _, tool in _ui_tools(subject)}


def _meant(subject: Subject, component: str) -> str | None:
    """Return the unused component file that a tool without one probably means."""
    return nearest(component, _unshown(subject))


def _is_reported(subject: Subject, tool: UiTool) -> bool:
    """Return whether UI001 reports the component of a tool."""
    name = tool.ui.component
    lost = tool.response_schema is None or _meant(subject, name) is not None
    return lost and name not in _drawn_components(subject)


#: Comments and strings, which are skipped, and the two forms of a default export.
_HIDDEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'|`(?:\\.|[^`\\])*+`""",
    re.DOTALL,
)
_EXPORT: Final = re.compile(
    r"(?<![\w$.])export(?:\s+default\b|\s*\{[^{}]*\bas\s+default\b[^{}]*\})"
)


def default_exports(text: str) -> Iterator[int]:
    """Yield the offset of every default export outside of comments and strings."""
    plain = _HIDDEN.sub(lambda found: " " * len(found[0]), text)
    return (found.start() for found in _EXPORT.finditer(plain))


@rule("NAME001", "tools", "lifecycle_tools", "hooks", "code", affects_routes=False)
def question_has_tool(subject: Subject) -> Iterator[Hit]:
    known = [tool.function for tool in subject.spec.tools if isinstance(tool, UiTool)]
    right = {None, *known, *subject.once(functions_meant)}
    modules = code_of(subject).modules
    used = {
        (definition.file, asked): None
        for entry in all_entries(subject)
        for definition in reachable(subject, entry.file or "", entry.declared.function)
        for asked in sorted(definition.asked, key=str)
    }
    for file, (name, spot, root) in used:
        if name not in right and _is_outside(modules[file], root):
            yield Hit(
                (),
                f'{UI_CALL} names unknown UI tool "{name}"',
                hint=did_you_mean(str(name), known) or (_remedy(subject, str(name)),),
                place=modules[file].place(spot),
            )


@rule("UI011", "tools", "lifecycle_tools", "hooks", "code")
def answer_is_awaited(subject: Subject) -> Iterator[Hit]:
    modules = code_of(subject).modules
    used = {
        (definition.file, call): None
        for entry in all_entries(subject)
        for definition in reachable(subject, entry.file or "", entry.declared.function)
        for call in definition.unawaited
    }
    for file, (_, spot, root) in used:
        if _is_outside(modules[file], root):
            yield Hit(
                (),
                f"the result of {UI_CALL} is used without await",
                hint=(f"write await {UI_CALL}(...) in an async def",),
                place=modules[file].place(spot),
            )


def _remedy(subject: Subject, name: str) -> str:
    if name in subject.tools:
        return f"declare {name} as UI_Tool, or name another tool"
    return "declare it in tools.json as UI_Tool, or name one that is declared"


def _is_outside(module: Module, name: str) -> bool:
    """Return whether a name is imported from outside the package."""
    found = module.definitions.get(name)
    return found is not None and not found.origin and name not in module.functions


@rule("UI008", "agents", "tools", "code")
def approval_can_be_asked_for(subject: Subject) -> Iterator[Hit]:
    asking = {
        agent_meant(subject, entry.declared.agent)
        for entry in tool_entries(subject)
        if isinstance(entry.declared, UiTool)
        or any(
            function.asked
            for function in reachable(subject, entry.file or "", entry.declared.function)
        )
    }
    for index, agent in enumerate(subject.spec.agents):
        if agent.human_interaction == "approval" and agent.agent_name not in asking:
            yield Hit(
                ("agents", index, "human_interaction"),
                f"{agent.agent_name} needs approval, but has no UI tool to ask for it",
                hint=(
                    f"give {agent.agent_name} a UI_Tool that asks",
                    'or write another human_interaction, such as "context"',
                ),
            )


@rule("NAME001", "tools", affects_routes=False)
def told_field_is_answered(subject: Subject) -> Iterator[Hit]:
    for index, tool in _ui_tools(subject):
        for reference in references(tool.tell or ""):
            lost = follow(tool.response_schema or {}, reference.name)
            if isinstance(lost, UnknownKey):
                what = f"{tool.function} tells the user"
                yield unknown_field(("tools", index, "tell"), what, lost, offset=reference.offset)


@rule("UI010", "variables", "tools")
def secret_answer_sets_nothing(subject: Subject) -> Iterator[Hit]:
    for answer in _answers(subject):
        steps = answer.key.split(".")
        ways = (".".join(steps[: end + 1]) for end in range(len(steps)))
        parts = ((way, follow(answer.schema, way)) for way in ways)
        secret = next(
            (way for way, part in parts if not isinstance(part, UnknownKey) and _is_secret(part)),
            "",
        )
        # With a transition the answer triggers the change, but is not the new value.
        if secret and not answer.placed.transition:
            yield Hit(
                (*answer.placed.path, "response_key"),
                f'"{secret}" in the answer to {answer.tool} is a secret field, which is never '
                f"stored: {answer.placed.variable} cannot be set from it",
                hint=("let the tool use the secret, and take another part of the answer",),
            )


def _is_secret(part: Json) -> bool:
    """Return whether a part of an answer is secret as a whole, such as a list of secrets."""
    if not isinstance(part, dict):
        return False
    field = cast("JsonMap", part)
    items = field.get("items")
    inside = cast("JsonMap", items).get("properties") if isinstance(items, dict) else None
    held = cast("JsonMap", inside).values() if isinstance(inside, dict) else ()
    return (
        field.get("writeOnly") is True
        or field.get("format") == "password"
        or any(_is_secret(schema) for schema in (items, *held))
    )
