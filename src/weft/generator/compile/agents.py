"""Transformation 13.3: agents with what each is told, how far it may go, and how it replies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.generator.compile.texts import line, literal, words_of
from weft.generator.compile.wires import DECISION, READY, Decision, Wiring
from weft.generator.shapes import ToolShape
from weft.generator.workflow_plan import PlannedModule, WorkflowPlan
from weft.spec.agents import REPLY_LIMITS, Agent, AgentType, PromptSection
from weft.spec.plan import PlannedAgent
from weft.spec.variables import EnvironmentSource, Variable

_ROLES: Final[dict[AgentType, str]] = {
    "intake": "You take requests in and find out what is needed.",
    "router": "You decide who works on a request. You do not work on it yourself.",
    "worker": "You are a specialist who does one piece of work well.",
    "evaluator": "You judge the work of others by what was asked for. You do not redo it.",
    "orchestrator": "You lead the others: you say who does what, and when it is done.",
    "generator": "You make what was asked for.",
}


def agents(
    workflow: WorkflowPlan,
    wiring: Wiring,
    shapes: Sequence[ToolShape],
    known: Mapping[str, Variable],
    shown: Mapping[str, Sequence[str]],
) -> tuple[Agent, ...]:
    """Return the agents in the order of the modules."""
    return tuple(
        _agent(it, module, wiring, _Told(workflow, shapes, known, shown))
        for module in workflow.modules
        for it in module.agents
    )


class _Told:
    """What agents are told beside their objective."""

    def __init__(
        self,
        workflow: WorkflowPlan,
        shapes: Sequence[ToolShape],
        known: Mapping[str, Variable],
        shown: Mapping[str, Sequence[str]],
    ) -> None:
        self.workflow, self._shapes, self._known, self._shown = workflow, shapes, known, shown

    def tools(self, agent: str) -> list[ToolShape]:
        """Return the tools of an agent that its model calls."""
        return [it for it in self._shapes if it.agent == agent and not it.auto_invoke]

    def is_automatic(self, agent: str) -> bool:
        """Tell whether every reply of an agent calls a tool."""
        return any(it.agent == agent and it.auto_invoke for it in self._shapes)

    def context(self, agent: PlannedAgent, module: PlannedModule) -> str:
        """Return what the agent works in, and the variables it is shown."""
        lines = [
            f"Workflow: {literal(self.workflow.description)}",
            f"This part of it: {literal(module.purpose)}. {literal(module.description)}",
        ]
        for name in self._shown.get(agent.agent_name, ()):
            variable = self._known[name]
            # What it is for is shown with its value, after the prompt.
            told = " ".join(words_of(name)).capitalize()
            # What comes from the environment is not there in production: it is shown beside.
            here = isinstance(variable.source, EnvironmentSource)
            lines.append(f"{told}: see {name}" if here else f"{told}: {{{name}}}")
        return "\n".join(lines)


def _agent(agent: PlannedAgent, module: PlannedModule, wiring: Wiring, told: _Told) -> Agent:
    name = agent.agent_name
    automatic = told.is_automatic(name)
    steps = _steps(agent, wiring, told.tools(name))
    texts = {
        "role": _role(agent),
        "objective": literal(agent.objective) or literal(module.description) or module.purpose,
        "context": told.context(agent, module),
        "instructions": "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1)),
    }
    return Agent(
        agent_name=name,
        description=line(agent.objective),
        prompt_sections=tuple(
            PromptSection(id=key, heading=f"[{key.upper()}]", content=text)
            for key, text in texts.items()
        ),
        agent_type=agent.agent_type,
        human_interaction=agent.human_interaction,
        max_consecutive_auto_reply=_replies(agent, wiring),
        auto_tool_mode=automatic,
        structured_outputs_required=automatic,
    )


def _replies(agent: PlannedAgent, wiring: Wiring) -> int:
    """Return how many replies in a row an agent may give: more if it takes task after task."""
    limit = REPLY_LIMITS[agent.human_interaction]
    decision = wiring.decisions.get(agent.agent_name)
    if decision and any(it.target == agent.agent_name for it in decision.options):
        return max(limit, REPLY_LIMITS["none"])
    return min(agent.max_consecutive_auto_reply, limit)


def _role(agent: PlannedAgent) -> str:
    made = f" What you make is {agent.generation_mode}." if agent.generation_mode else ""
    return f"You are {agent.agent_name}. {_ROLES[agent.agent_type]}{made}"


def _steps(agent: PlannedAgent, wiring: Wiring, tools: Sequence[ToolShape]) -> Iterator[str]:
    """Yield what an agent does in a turn: its tools, then how its turn ends."""
    name = agent.agent_name
    yield "Read what was said so far, and do not repeat the work of others."
    for it in tools:
        asks = name in wiring.approvals and any(one.name == DECISION for one in it.result)
        wait = " Do this whenever your work is done, and wait for the decision." if asks else ""
        yield f"Call {it.name} when it helps: {literal(it.purpose).rstrip('.')}.{wait}"
    if name in wiring.ready:
        yield "Ask the user for what you still need, one question at a time."
        yield f"When you know enough, reply with exactly: {READY}"
    elif name in wiring.decisions:
        yield from _deciding(wiring.decisions[name])
    elif name in wiring.approvals and wiring.approvals[name].by_reply:
        yield "Reply with JSON: a title, and as content your work in full. A person decides on it."
    else:
        yield "Say what you have done and what came of it, in full, for whoever is next."


def _deciding(decision: Decision) -> Iterator[str]:
    options = "; ".join(f"{it.value} ({literal(it.meaning)})" for it in decision.options)
    if decision.tasks:
        yield "List every task that is open in open_tasks, one sentence each."
    yield f"Reply with JSON. Set {decision.field} to one of: {options}."
    yield "Say in summary what you did and why, and in agent_message what the user is told."
