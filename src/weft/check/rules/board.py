"""Family BOARD, first part: agents of the board, and types of artifacts."""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.check.answer_schema import root_of, schema_faults
from weft.check.board_parts import (
    agents_of,
    board_of,
    components,
    known_types,
    policies,
    providers,
    publications,
    subscriptions,
)
from weft.check.rules.references import Reference, unknown_names
from weft.check.spelling import listed
from weft.check.subject import Hit, Subject, rule
from weft.findings import Path
from weft.ids import nearest
from weft.spec.agents import BoardIngredient
from weft.spec.board import TICK, BoardAgent, LabelledVisibility, ModelEngine, PrivateVisibility
from weft.spec.part import JsonMap, Part
from weft.spec.providers import FilteredProvider, SemanticProvider, SummaryProvider

#: What only a conversation has, of the workflow and of its agents.
_OF_WORKFLOW: Final = (
    "initial_agent", "parallel", "default_target", "orchestration_pattern", "initial_message",
    "initial_message_to_user", "max_turns", "human_in_the_loop", "trigger", "initiated_by",
    "startup_mode", "visual_agents", "condition_profile", "llm_conditions",
)  # fmt: skip
_OF_AGENTS: Final = (
    "handoff_tools", "auto_tool_mode", "structured_outputs_required", "human_interaction",
    "max_consecutive_auto_reply",
)  # fmt: skip

#: The hooks that a component of the whole board may have.
_BOARD_HOOKS: Final = ("artifact_published", "before_schedule")


@rule("BOARD001", "board", "flow", "orchestrator", "handoffs", "agents", "registry")
def one_way_to_work_together(subject: Subject) -> Iterator[Hit]:
    spec = subject.spec
    if spec.board is None:
        return
    if spec.flow is not None:
        hint = "remove board.json or flow.json"
        yield Hit(("flow",), "the workflow has a flow, and a board as well", hint=(hint,))
    parts = [*changed(spec.orchestrator, _OF_WORKFLOW, ("orchestrator",))]
    parts += [(("handoffs", 0), "handoffs")] if spec.handoffs else []
    for index, agent in enumerate(spec.agents):
        parts += changed(agent, _OF_AGENTS, ("agents", index))
    bound = [index for index, it in enumerate(spec.registry) if it.model]
    parts += [(("registry", index), "the registry") for index in bound[:1]]
    for path, name in parts:
        yield Hit(
            path,
            f"{name} is for a conversation, and this workflow is a board",
            hint=("remove it: on a board, artifacts say who works", "or remove board.json"),
        )


def changed(part: Part, names: Iterable[str], path: Path) -> Iterator[tuple[Path, str]]:
    """Yield what is declared of some fields."""
    for name in names:
        if getattr(part, name) != type(part).model_fields[name].default:
            yield (*path, name), name


@rule("NAME003", "board", "agents")
def agent_takes_part(subject: Subject) -> Iterator[Hit]:
    if subject.spec.board is None:
        return
    named = [it.agent for _, it in agents_of(subject)]
    # NAME001 reports one that is misspelt there.
    meant = {nearest(name, subject.agents) for name in named if name not in subject.agents}
    for index, agent in enumerate(subject.spec.agents):
        if agent.agent_name not in named and agent.agent_name not in meant:
            yield Hit(
                ("agents", index, "agent_name"),
                f"{agent.agent_name} is never used: it is not on the board",
                hint=("add it to board.json, or remove it",),
                severity="error",
            )


@rule("NAME001", "board")
def type_is_declared(subject: Subject) -> Iterator[Hit]:
    return unknown_names(subject, _named_types(subject))


def _named_types(subject: Subject) -> Iterator[Reference]:
    """Yield the types that joins and providers name; the table has all others."""
    for path, agent, it in subscriptions(subject):
        if it.join and isinstance(it.join.by, dict):
            for name in it.join.by:
                what = f"a join of {agent.agent} has a key for"
                yield Reference((*path, "join", "by", name), "type", name, what)
    for path, agent, it in providers(subject):
        what = f"a provider of {agent.agent}"
        if isinstance(it, FilteredProvider | SemanticProvider):
            for index, name in enumerate(it.filters.types):
                if name != TICK:
                    place = (*path, "filters", "types", index)
                    yield Reference(place, "type", name, f"{what} selects")
        elif isinstance(it, SummaryProvider):
            for name in it.templates:
                if name != TICK:
                    place = (*path, "templates", name)
                    yield Reference(place, "type", name, f"{what} has a template for")


@rule("NAME003", "board")
def type_is_used(subject: Subject) -> Iterator[Hit]:
    known = known_types(subject)
    used = {name for _, _, it in subscriptions(subject) for name in it.types}
    used |= {it.type for _, _, it in publications(subject)}
    used |= {nearest(name, known) or name for name in used.difference(known)}
    for index, name in enumerate(known):
        if name not in used:
            fact = f"the artifact type {name} is never used: no agent publishes or consumes it"
            hint = 'add a subscription for it, or remove it from "artifacts"'
            yield Hit(("board", "artifacts", index), fact, hint=(hint,))


@rule("BOARD009", "board")
def schema_describes_an_object(subject: Subject) -> Iterator[Hit]:
    for index, it in enumerate(board_of(subject).artifacts):
        if isinstance(it, str):
            continue
        path: Path = ("board", "artifacts", index, "schema")
        for fault in schema_faults(it.schema_):
            where = ".".join(map(str, fault.path)) or "it"
            fact = f"the schema of {it.name} cannot be used: {where} {fault.fact}"
            yield Hit((*path, *fault.path), fact, hint=(fault.hint,))
        whole = root_of(it.schema_)
        if whole is not None and not _is_object(whole):
            fact = f"the schema of {it.name} describes no object, and payloads are objects"
            yield Hit(path, fact, hint=('write {"type": "object", "properties": {...}}',))


def _is_object(schema: JsonMap) -> bool:
    if "type" in schema:
        return schema["type"] == "object"
    return not schema.keys().isdisjoint(("properties", "anyOf", "oneOf", "allOf"))


@rule("BOARD010", "board")
def something_wakes_it(subject: Subject) -> Iterator[Hit]:
    for path, it in agents_of(subject):
        if not it.consumes and it.schedule is None:
            fact = f"nothing ever wakes {it.agent}: it consumes nothing and has no schedule"
            hint = "say under consumes what wakes it, or give it a schedule"
            yield Hit((*path, "agent"), fact, hint=(hint,))


@rule("NAME001", "board")
def agents_and_labels_exist(subject: Subject) -> Iterator[Hit]:
    return unknown_names(subject, _named_agents(subject))


def _named_agents(subject: Subject) -> Iterator[Reference]:
    """Yield the agents and labels that visibility policies and providers name."""
    for path, policy in policies(subject):
        if isinstance(policy, PrivateVisibility):
            for index, name in enumerate(policy.agents):
                what = "an artifact is private to"
                yield Reference((*path, "agents", index), "board agent", name, what)
        elif isinstance(policy, LabelledVisibility):
            for index, name in enumerate(policy.labels):
                what = "no agent sees the artifact:"
                yield Reference((*path, "labels", index), "label", name, what)
    for path, agent, it in providers(subject):
        if isinstance(it, FilteredProvider | SemanticProvider):
            for index, name in enumerate(it.filters.producers):
                what = f"a provider of {agent.agent} selects artifacts of"
                yield Reference((*path, "filters", "producers", index), "board agent", name, what)


@rule("BOARD022", "board")
def component_is_called(subject: Subject) -> Iterator[Hit]:
    for path, agent, it in components(subject):
        strange = [hook for hook in it.hooks if agent is None and hook not in _BOARD_HOOKS]
        if not it.hooks:
            fact = f"no hook of {it.component} is called"
            yield Hit((*path, "hooks"), fact, hint=("name its hooks, or remove the component",))
        elif strange:
            fact = f"{it.component} is for the whole board, and {listed(strange)} for an agent"
            hint = f"move it to an agent; the board calls {listed(_BOARD_HOOKS)}"
            yield Hit((*path, "hooks"), fact, hint=(hint,))


@rule("BOARD026", "board")
def agent_does_not_wake_itself(subject: Subject) -> Iterator[Hit]:
    for path, agent, it in subscriptions(subject):
        made = {one.type for one in agent.publishes}
        own = [name for name in dict.fromkeys(it.types) if name in made]
        others = it.mode == "direct" or (it.from_agents and agent.agent not in it.from_agents)
        if own and not others and not agent.prevent_self_trigger:
            yield Hit(
                (*path, "types"),
                f"{agent.agent} wakes itself: it publishes {listed(own)}, and consumes that",
                hint=(
                    "narrow where, so that it comes to an end; else the breaker ends it",
                    'or remove "prevent_self_trigger"',
                ),
            )


@rule("BOARD027", "board", "agents")
def model_is_told_what_to_do(subject: Subject) -> Iterator[Hit]:
    for path, it in agents_of(subject):
        agent = subject.agents.get(it.agent)
        told = agent is None or agent.prompt_sections or agent.description.strip()
        if not told and _has_silent_model(it):
            yield Hit(
                (*path, "agent"),
                f"the model of {it.agent} has no instructions",
                hint=("write a prompt or a description in agents.json",),
            )


def _has_silent_model(agent: BoardAgent) -> bool:
    engines = agent.engines or (ModelEngine(),)
    return any(isinstance(it, ModelEngine) and not it.instructions.strip() for it in engines)


@rule("BOARD028", "agents", "board")
def context_has_its_board(subject: Subject) -> Iterator[Hit]:
    if subject.spec.board is not None:
        return
    for number, agent in enumerate(subject.spec.agents):
        for index, it in enumerate(agent.context):
            if isinstance(it, BoardIngredient):
                fact = f'the context of {agent.agent_name} has the part "board" without a board'
                hint = "remove this part, or write board.json"
                yield Hit(("agents", number, "context", index), fact, hint=(hint,))
