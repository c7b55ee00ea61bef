"""Agents: what each is told, and the model that its structured replies fit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.generator.compile.texts import line, literal, title
from weft.generator.compile.tools import reply_fields
from weft.generator.compile.values import Values
from weft.generator.compile.wiring import Turn, Way
from weft.ids import TERMINATE, USER
from weft.spec.agents import REPLY_LIMITS, Agent, AgentType, PromptSection
from weft.spec.form import ASK_USER
from weft.spec.part import Name
from weft.spec.type_field import ModelField, OutputBinding, OutputModel
from weft.spec.types import Scalar

_ROLES: Final[Mapping[AgentType, str]] = {
    "intake": "You take a request in and find out what is needed.",
    "router": "You decide who works on a request. You do not work on it yourself.",
    "worker": "You do one piece of work.",
    "evaluator": "You judge the work of others. You do not redo it.",
    "orchestrator": "You lead the others: you decide who does what, and when it is done.",
    "generator": "You produce what was asked for.",
}
#: What the user of the run reads of a structured reply.
_MESSAGE: Final = "agent_message"


def is_visible(values: Values, turn: Turn) -> bool:
    """Return whether the user of the run sees what an agent says: it talks to them."""
    if turn.is_person or not values.workflow.is_attended:
        return turn.agent.tell is not None and not turn.is_person
    ending = {
        name for each in values.wiring.groups if each.next == TERMINATE for name in each.members
    }
    met = {way.target for way in turn.ways if way.when or not turn.outcomes}
    met_by_user = not met.isdisjoint((USER, TERMINATE)) or turn.name in ending
    return turn.asks or turn.agent.tell is not None or met_by_user


def make_agent(values: Values, turn: Turn) -> Agent:
    """Return an agent with its prompt."""
    planned, structured = turn.agent, values.is_structured(turn)
    steps = [f"{place}. {step}" for place, step in enumerate(_steps(values, turn), 1)]
    never = [f"- {literal(rule)}" for rule in values.workflow.strategy.never]
    told = literal(values.workflow.description)
    texts = {
        "role": _role(turn),
        "task": literal(planned.objective) or literal(turn.module.description),
        "workflow": f"{told}\nThis step: {literal(turn.module.purpose)}.",
        "never": "\n".join(never),
        "steps": "\n".join(steps),
    }
    limit = REPLY_LIMITS[planned.human_interaction]
    return Agent(
        agent_name=turn.name,
        description=line(planned.objective),
        prompt_sections=tuple(
            PromptSection(id=key, heading=f"[{key.upper()}]", content=text)
            for key, text in texts.items()
            if text
        ),
        agent_type=planned.agent_type,
        human_interaction=planned.human_interaction,
        max_consecutive_auto_reply=min(planned.max_consecutive_auto_reply, limit),
        auto_tool_mode=structured,
        structured_outputs_required=structured,
    )


def _role(turn: Turn) -> str:
    if turn.is_person:
        return f"You are {turn.name}. A person decides here; you prepare the question."
    made = (
        f" What you produce is {turn.agent.generation_mode}." if turn.agent.generation_mode else ""
    )
    return f"You are {turn.name}. {_ROLES[turn.agent.agent_type]}{made}"


def _steps(values: Values, turn: Turn) -> Iterator[str]:
    """Yield what an agent does in a turn, and how it ends."""
    yield "Read what was said so far. Do not repeat the work of others."
    for question in turn.questions:
        yield f"Call {question.name} before you decide: {literal(question.purpose).rstrip('.')}."
    for tool in turn.agent.agent_tools:
        if tool.interaction_mode == "none":
            yield f"Call {tool.name} when it helps: {literal(tool.purpose).rstrip('.')}."
    if not values.is_structured(turn):
        yield "Say what you have done, in full, for the agent that follows."
        return
    if turn.is_person:
        yield "Reply with JSON. In briefing, say in full what the person must know to decide."
        return
    yield "Reply with JSON."
    if turn.outcomes:
        listed = "; ".join(f"{name}{_following(turn.ways, name)}" for name in turn.outcomes)
        yield f"Set outcome to one of: {listed}."
    fields = [field.name for field in reply_fields(values, turn)[bool(turn.outcomes) :]]
    if fields:
        yield f"Fill in {', '.join(fields)}; use what was said, and invent nothing."
    if turn.asks:
        yield (
            f"While something is missing, set outcome to {ASK_USER}, leave out what you do not "
            f"know, and ask one question in {_MESSAGE}."
        )
    if turn.agent.tell:
        yield f"When you have decided, tell the user in {_MESSAGE}: {literal(turn.agent.tell)}"
    elif is_visible(values, turn):
        yield f"Write in {_MESSAGE} what the user reads."


def _following(ways: Sequence[Way], outcome: str) -> str:
    """Return what follows an outcome, as an agent is told."""
    target = next((way.target for way in ways if way.when == outcome), None)
    names = {TERMINATE: "the end", USER: "the user answers", None: "as the values say"}
    return f" (then {names.get(target, target)})"


def models(
    values: Values, turns: Sequence[Turn]
) -> tuple[tuple[OutputModel, ...], tuple[OutputBinding, ...]]:
    """Return the models of structured replies, and the agents whose replies fit them."""
    found: dict[Name, OutputModel] = {}
    for turn in turns:
        if not values.is_structured(turn):
            continue
        fields = {
            field.name: ModelField(
                type=field.value_type, description=line(field.description or title(field.name))
            )
            for field in reply_fields(values, turn)
        }
        if is_visible(values, turn):
            fields[_MESSAGE] = ModelField(type=Scalar("str"), description="What the user reads.")
        name = f"{turn.name}Reply"
        told = f"What {turn.name} replies."
        found[turn.name] = OutputModel(name=name, description=told, fields=fields)
    bound = (OutputBinding(agent=agent, model=model.name) for agent, model in found.items())
    return tuple(found.values()), tuple(bound)
