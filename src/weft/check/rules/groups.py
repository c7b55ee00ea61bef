"""Families NAME and HAND: groups of agents that take their turns side by side."""

from collections.abc import Iterator

from weft.check.code.facts import missing_function, reached
from weft.check.declarations import placed_triggers
from weft.check.rules.declared import tool_entries
from weft.check.spelling import listed, unknown_name
from weft.check.subject import Hit, Subject, rule
from weft.findings import Path
from weft.ids import AGENT_NAME, TERMINATE, USER
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    LifecycleTrigger,
    ToolCallTrigger,
    ToolFailedTrigger,
    ToolResponseTrigger,
    UiResponseTrigger,
)


def _path(index: int, *rest: str | int) -> Path:
    return ("orchestrator", "parallel", index, *rest)


@rule("NAME010", "orchestrator", "agents")
def group_has_a_name_of_its_own(subject: Subject) -> Iterator[Hit]:
    taken = {USER: "a fixed target", TERMINATE: "a fixed target"}
    taken |= dict.fromkeys(subject.agents, "an agent")
    for index, group in enumerate(subject.spec.orchestrator.parallel):
        if group.name in taken:
            fact = f'"{group.name}" is the name of a group and of {taken[group.name]}'
            yield Hit(_path(index, "name"), fact, hint=("give the group another name",))
        elif not AGENT_NAME.match(group.name):
            fact = f'the group name "{group.name}" is not PascalCase'
            yield Hit(_path(index, "name"), fact, hint=("write it like an agent: ReviewTeam",))
        taken[group.name] = "another group"


@rule("HAND021", "orchestrator", "agents")
def members_and_next_exist(subject: Subject) -> Iterator[Hit]:
    for index, group in enumerate(subject.spec.orchestrator.parallel):
        for place, member in enumerate(group.members):
            path = _path(index, "members", place)
            if member not in subject.agents:
                fact = f'"{member}" in the group {group.name} is no agent'
                yield unknown_name(path, member, subject.agents, fact, "name an agent")
            elif member in group.members[:place]:
                fact = f"{member} is in the group {group.name} twice"
                yield Hit(path, fact, hint=("name each member once",))
        if group.next is not None and group.next not in subject.targets:
            fact = f'after the group {group.name} comes "{group.next}", which is no agent'
            otherwise = "name an agent, a group, user or terminate"
            yield unknown_name(_path(index, "next"), group.next, subject.targets, fact, otherwise)


@rule("HAND022", "orchestrator", "code")
def merge_function_is_there(subject: Subject) -> Iterator[Hit]:
    for index, group in enumerate(subject.spec.orchestrator.parallel):
        if (group.merge == "custom") != (group.function is not None):
            fact = f"the group {group.name} merges with {group.merge}, and "
            fact += "names no function" if group.function is None else "its function is not used"
            hint = 'write "merge": "custom" and "function": "module:function", or neither'
            key = "merge" if group.function is None else "function"
            yield Hit(_path(index, key), fact, hint=(hint,))
        elif group.function is not None:
            fault = missing_function(subject, group.function)
            if fault:
                yield Hit(_path(index, "function"), fault.fact, hint=fault.hint)


@rule("HAND023", "orchestrator", "agents", "variables", "tools", "code")
def members_set_variables_of_their_own(subject: Subject) -> Iterator[Hit]:
    for index, group in enumerate(subject.spec.orchestrator.parallel):
        if group.merge in ("first", "majority"):
            continue  # what one of them has set counts
        writers: dict[str, set[str]] = {}
        for agent, name in _writes(subject):
            if agent in group.members:
                writers.setdefault(name, set()).add(agent)
        for name, found in writers.items():
            variable = subject.spec.variables.get(name)
            if len(found) > 1 and variable is not None and variable.merge is None:
                first, *others = [it for it in group.members if it in found]
                yield Hit(
                    _path(index, "members"),
                    f"in the group {group.name}, {listed([first, *others])} may set {name}: "
                    f"what {first} sets counts, what differs is refused",
                    hint=(
                        f'declare for {name} how to merge: "append" or "merge"',
                        "or give each a variable of its own",
                    ),
                )


def _writes(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield which agent may set which variable in its turn."""
    users: dict[str, list[str]] = {}
    for entry in tool_entries(subject):
        tool = entry.declared
        users.setdefault(tool.function, []).append(tool.agent)
        found = reached(subject, entry.file or "", tool.function) if entry.function else ()
        names = {write.variable for it in found for write in it.writes}
        yield from ((tool.agent, name) for name in names if name is not None)
    for placed in placed_triggers(subject):
        match placed.trigger:
            case (
                AgentTextTrigger(agent=str() as agent)
                | AgentTurnCountTrigger(agent=str() as agent)
                | LifecycleTrigger(agent=str() as agent)
            ):
                yield agent, placed.variable
            case (
                ToolCallTrigger(tool=str() as tool)
                | ToolResponseTrigger(tool=str() as tool)
                | UiResponseTrigger(tool=str() as tool)
                | ToolFailedTrigger(tool=str() as tool)
            ):
                yield from ((agent, placed.variable) for agent in users.get(tool, ()))
            case _:
                continue
