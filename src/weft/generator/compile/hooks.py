"""Hooks: what the plan wants done around a chat, and what changes the behaviour of one agent."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from weft.generator.compile.texts import line, words_of
from weft.generator.names import snake_case, unique
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.plan import PlannedLifecycle
from weft.spec.tools import Hook, HookType
from weft.spec.triggers import LifecyclePoint


def hooks(workflow: WorkflowPlan, taken: Collection[str]) -> tuple[Hook, ...]:
    """Return the hooks: of the chat first, then those of the agents, one file for each.

    None is called like a tool, so that a name stands for one function everywhere.
    """
    blueprint = workflow.blueprint
    around: tuple[tuple[LifecyclePoint, PlannedLifecycle | None], ...] = (
        ("before_chat", blueprint.before_chat_lifecycle),
        ("after_chat", blueprint.after_chat_lifecycle),
    )
    of_chat = (_of_chat(point, it, taken) for point, it in around if it)
    return (*of_chat, *_of_agents(workflow, taken))


def _of_chat(point: LifecyclePoint, planned: PlannedLifecycle, taken: Collection[str]) -> Hook:
    return Hook(
        hook_type=point,
        file=f"{point}.py",
        function=unique(snake_case(planned.name, point), taken),
        description=line(planned.purpose),
        integration=planned.integration,
    )


#: What changes messages; every other hook changes what the agent is told.
_MESSAGE_HOOKS: Final[tuple[HookType, ...]] = (
    "process_message_before_send",
    "process_last_received_message",
    "process_all_messages_before_reply",
)
#: Words about what nobody shall read: it is taken out of what an agent says.
_HIDING: Final = re.compile(r"\b(?:mask|redact|hid(?:e|es|ing)\b|anonymi|pseudonymi)")


def _kind(name: str, purpose: str) -> HookType:
    """Return the boundary that a hook is named after, or that its words speak of."""
    for kind in _MESSAGE_HOOKS:
        if name.startswith(kind):
            return kind
    said = " ".join(words_of(f"{name} {purpose}"))
    return "process_message_before_send" if _HIDING.search(said) else "update_agent_state"


def _of_agents(workflow: WorkflowPlan, taken: Collection[str]) -> Iterator[Hook]:
    files = {"before_chat", "after_chat"}
    for agent in workflow.agents:
        file = unique(snake_case(agent.agent_name, "agent"), files)
        files.add(file)
        functions = set(taken)
        for it in agent.system_hooks:
            name = unique(snake_case(it.name, "adjust"), functions)
            functions.add(name)
            yield Hook(
                hook_type=_kind(name, it.purpose),
                agent=agent.agent_name,
                file=f"{file}.py",
                function=name,
                description=line(it.purpose),
            )
