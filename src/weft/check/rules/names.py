"""NAME004 to NAME006: names that are badly formed or reserved; and tools declared twice."""

import keyword
import re
from collections.abc import Iterable, Iterator
from typing import Final

from weft.check.board_parts import known_types
from weft.check.code.facts import path_in
from weft.check.rules.code import all_tool_entries
from weft.check.spelling import pascal_case, snake_case
from weft.check.subject import CONVERSATION, Hit, Subject, rule
from weft.findings import Fix, Path, Remove
from weft.ids import AGENT_NAME, BUILT_IN_VARIABLES, SNAKE_NAME, TERMINATE, USER
from weft.spec.board import TICK
from weft.spec.conditions import KEYWORDS
from weft.spec.types import ListOf, Ref, TypeExpr, is_model_name


@rule("NAME004", "agents", "board")
def agent_is_pascal_case(subject: Subject) -> Iterator[Hit]:
    on_board = subject.spec.board is not None
    for index, name in _first_of(agent.agent_name for agent in subject.spec.agents):
        if on_board and SNAKE_NAME.match(name):
            continue  # agents of a board are not addressed by name
        if not AGENT_NAME.match(name) and not _is_target_word(name):
            case = "neither PascalCase nor snake_case" if on_board else "not PascalCase"
            yield Hit(
                ("agents", index, "agent_name"),
                f'the agent name "{name}" is {case}',
                hint=_rename(pascal_case(name), "in all files that name the agent"),
            )


@rule("NAME004", "tools", "lifecycle_tools", "variables", "models")
def names_are_snake_case(subject: Subject) -> Iterator[Hit]:
    for path, name in _functions(subject):
        if name.isidentifier() and not SNAKE_NAME.match(name):
            yield Hit(
                path,
                f'the function name "{name}" is not snake_case',
                hint=_rename(snake_case(name), "here and in the code"),
            )
    for name in subject.spec.variables:
        if not SNAKE_NAME.match(name) and not why_reserved(name):
            yield Hit(
                ("variables", name),
                f'the variable name "{name}" is not snake_case',
                hint=_rename(snake_case(name), "everywhere it is used"),
                at_key=True,
            )
    for index, model in enumerate(subject.spec.models):
        for name, field in model.fields.items():
            if not SNAKE_NAME.match(name) and not _is_key(name, field.type):
                yield Hit(
                    ("models", index, "fields", name),
                    f'the field name "{name}" of {model.name} is not snake_case',
                    hint=_rename(snake_case(name), "here and in the code that uses it"),
                    at_key=True,
                )


def _is_key(name: str, type_: TypeExpr) -> bool:
    """Return whether a field has a name that is usual in JSON: camelCase, or a model's name.

    A key that wraps a whole model is written like the model, as in `{"Invoice": {...}}`.
    """
    inner = type_.of if isinstance(type_, ListOf) else type_
    if isinstance(inner, Ref) and AGENT_NAME.match(name):
        return True
    return name.isalnum() and name.isascii() and name[0].islower()


@rule("NAME002", "tools")
def tool_is_unique(subject: Subject) -> Iterator[Hit]:
    tools = subject.spec.tools
    pairs: dict[tuple[str, str], int] = {}
    files: dict[str, str] = {}
    for index, tool in enumerate(tools):
        path = ("tools", index, "function")
        file = path_in("tools", tool.file, subject.code) or tool.file
        first = pairs.setdefault((tool.agent, tool.function), index)
        known = files.setdefault(tool.function, file)
        if first != index:
            removal = Fix("remove the second one", (Remove(("tools", index)),))
            yield Hit(
                path,
                f"{tool.agent} has the tool {tool.function} twice",
                cause=(f"tool number {first + 1} of the file has this agent and function already",),
                hint=("remove one of them",),
                fix=removal if tool == tools[first] else None,
            )
        elif known != file:
            yield Hit(
                path,
                f"the tool name {tool.function} names two functions",
                cause=(f"one is in {known}, the other in {file}",),
                hint=("give one of the functions another name: triggers refer to tools by it",),
            )


@rule("NAME005", "orchestrator")
def workflow_is_named_like_its_folder(subject: Subject) -> Iterator[Hit]:
    name = subject.spec.orchestrator.workflow_name
    if subject.folder not in ("", name):
        yield Hit(
            ("orchestrator", "workflow_name"),
            f'the workflow is named "{name}", its folder "{subject.folder}"',
            hint=(f'write "{subject.folder}" here', f"or rename the folder to {name}"),
        )


@rule("NAME006", "agents", modes=CONVERSATION)
def agent_is_not_a_target_word(subject: Subject) -> Iterator[Hit]:
    for index, name in _first_of(agent.agent_name for agent in subject.spec.agents):
        if _is_target_word(name):
            meaning = "the person" if name.lower() == USER else "the end of the run"
            yield Hit(
                ("agents", index, "agent_name"),
                f'an agent is named "{name}", which means {meaning} in a handoff',
                hint=("give the agent another name",),
            )


@rule("NAME004", "models")
def model_is_pascal_case(subject: Subject) -> Iterator[Hit]:
    for index, name in _first_of(model.name for model in subject.spec.models):
        path: Path = ("models", index, "name")
        if not AGENT_NAME.match(name):
            hint = _rename(pascal_case(name), "in all types that name the model")
            yield Hit(path, f'the model name "{name}" is not PascalCase', hint=hint)
        elif not is_model_name(name):
            message = f'the model name "{name}" is a word of the type language'
            yield Hit(path, message, hint=(f"give it another name, such as {name}Model",))


def _functions(subject: Subject) -> Iterator[tuple[Path, str]]:
    """Yield each function of the tools once, unless it is missing in the code."""
    seen: set[str] = set()
    for entry in all_tool_entries(subject):
        name = entry.declared.function
        if name not in seen and (entry.module is None or entry.module.defines(name)):
            seen.add(name)
            yield (*entry.path, "function"), name


def _is_target_word(name: str) -> bool:
    return name.lower() in (USER, TERMINATE)


def _rename(name: str, where: str) -> tuple[str, ...]:
    return (f"write {name}, {where}",) if name else ("use English letters and digits",)


def _first_of(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield each name once; another rule reports duplicates."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name not in seen:
            seen.add(name)
            yield index, name


@rule("NAME006", "orchestrator", "agents", modes=CONVERSATION)
def group_name_is_free(subject: Subject) -> Iterator[Hit]:
    taken = {USER: "a fixed target", TERMINATE: "a fixed target"}
    taken |= dict.fromkeys(subject.agents, "an agent")
    for index, group in enumerate(subject.spec.orchestrator.parallel):
        if group.name in taken:
            yield Hit(
                ("orchestrator", "parallel", index, "name"),
                f'the group name "{group.name}" is already the name of {taken[group.name]}',
                hint=("rename the group",),
            )


@rule("NAME004", "orchestrator", modes=CONVERSATION)
def group_is_pascal_case(subject: Subject) -> Iterator[Hit]:
    for index, name in _first_of(group.name for group in subject.spec.orchestrator.parallel):
        if not AGENT_NAME.match(name) and not _is_target_word(name):
            yield Hit(
                ("orchestrator", "parallel", index, "name"),
                f'the group name "{name}" is not PascalCase',
                hint=_rename(pascal_case(name), "in all handoffs to the group"),
                severity="error",
            )


#: A server's name is the prefix of its tools' names, whose length and characters are limited.
_SERVER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")


@rule("NAME006", "mcp_servers")
def server_name_can_be_used(subject: Subject) -> Iterator[Hit]:
    for index, server in enumerate(subject.spec.mcp_servers):
        if not _SERVER.fullmatch(server.name):
            yield Hit(
                ("mcp_servers", index, "name"),
                f'"{server.name}" is not a valid name of a tool server',
                hint=("use a letter, then up to 30 letters, digits, _ and -",),
            )


@rule("NAME006", "variables")
def variable_name_is_free(subject: Subject) -> Iterator[Hit]:
    for name in subject.spec.variables:
        reason = why_reserved(name)
        if reason:
            yield Hit(
                ("variables", name),
                f'the variable name "{name}" is reserved: {reason}',
                hint=("rename the variable",),
                at_key=True,
            )


def why_reserved(name: str) -> str | None:
    """Return why a variable cannot have this name; None if it can."""
    if name in BUILT_IN_VARIABLES:
        return "every run has a built-in variable of this name"
    if name.startswith("_") or name.lower().startswith("weft"):
        return "names that begin with _ or weft belong to Weft"
    if name.lower() in KEYWORDS:
        return "it is a keyword of conditions"
    if keyword.iskeyword(name):
        return "it is a keyword of Python"
    if name == "structured_output":
        return "it is the structured reply of an agent"
    return None


@rule("NAME006", "board")
def tick_is_reserved(subject: Subject) -> Iterator[Hit]:
    for index, name in enumerate(known_types(subject)):
        if name == TICK:
            yield Hit(
                ("board", "artifacts", index),
                f"the artifact type {TICK} is reserved for schedules",
                hint=("rename the type",),
            )
