"""Hooks: what the plan wants done around a chat, and what changes the behaviour of one agent."""

from collections.abc import Iterator

from weft.generator.compile.texts import line
from weft.generator.names import snake_case, unique
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.plan import PlannedLifecycle
from weft.spec.tools import Hook
from weft.spec.triggers import LifecyclePoint


def hooks(workflow: WorkflowPlan) -> tuple[Hook, ...]:
    """Return the hooks: of the chat first, then those of the agents, one file for each."""
    blueprint = workflow.blueprint
    around: tuple[tuple[LifecyclePoint, PlannedLifecycle | None], ...] = (
        ("before_chat", blueprint.before_chat_lifecycle),
        ("after_chat", blueprint.after_chat_lifecycle),
    )
    return (*(_of_chat(point, it) for point, it in around if it), *_of_agents(workflow))


def _of_chat(point: LifecyclePoint, planned: PlannedLifecycle) -> Hook:
    return Hook(
        hook_type=point,
        file=f"{point}.py",
        function=snake_case(planned.name, point),
        description=line(planned.purpose),
        integration=planned.integration,
    )


def _of_agents(workflow: WorkflowPlan) -> Iterator[Hook]:
    files = {"before_chat", "after_chat"}
    for agent in workflow.agents:
        file = unique(snake_case(agent.agent_name, "agent"), files)
        files.add(file)
        functions: set[str] = set()
        for it in agent.system_hooks:
            name = unique(snake_case(it.name, "adjust"), functions)
            functions.add(name)
            yield Hook(
                hook_type="update_agent_state",
                agent=agent.agent_name,
                file=f"{file}.py",
                function=name,
                description=line(it.purpose),
            )
