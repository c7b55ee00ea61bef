"""Family BOARD, first part: who is on the board, and which artifacts there are."""

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
    references,
    subscriptions,
)
from weft.check.object_references import only_in_code, unfound
from weft.check.spelling import did_you_mean, listed, unknown_name
from weft.check.subject import Hit, Subject, rule
from weft.findings import Path
from weft.ids import OUTSIDE, nearest
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


@rule("BOARD002", "board", "agents")
def agent_is_declared(subject: Subject) -> Iterator[Hit]:
    for path, it in agents_of(subject):
        if it.agent not in subject.agents:
            fact = f'"{it.agent}" on the board is no agent of agents.json'
            otherwise = f'add {{"agent_name": "{it.agent}"}} to agents.json'
            yield unknown_name((*path, "agent"), it.agent, subject.agents, fact, otherwise)


@rule("BOARD003", "board", "agents")
def agent_takes_part(subject: Subject) -> Iterator[Hit]:
    if subject.spec.board is None:
        return
    named = [it.agent for _, it in agents_of(subject)]
    # One that is misspelt there, which BOARD002 reports, takes part.
    meant = {nearest(name, subject.agents) for name in named if name not in subject.agents}
    for index, agent in enumerate(subject.spec.agents):
        if agent.agent_name not in named and agent.agent_name not in meant:
            yield Hit(
                ("agents", index, "agent_name"),
                f"{agent.agent_name} is not on the board, so nothing ever wakes it",
                hint=("say in board.json what it consumes and publishes, or remove it",),
            )


@rule("BOARD004", "board")
def agent_stands_once(subject: Subject) -> Iterator[Hit]:
    met: set[str] = set()
    for path, it in agents_of(subject):
        if it.agent in met:
            fact = f"{it.agent} is on the board twice"
            yield Hit((*path, "agent"), fact, hint=("put both entries into one",))
        met.add(it.agent)


@rule("BOARD005", "board")
def type_is_declared(subject: Subject) -> Iterator[Hit]:
    known = known_types(subject)
    for path, name, what in _named_types(subject):
        if name not in known:
            fact = f'{what} "{name}", which is no type of the board'
            otherwise = "add it to the artifacts of the board"
            yield unknown_name(path, name, known, fact, otherwise)


def _named_types(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, agent, it in subscriptions(subject):
        for index, name in enumerate(it.types):
            yield (*path, "types", index), name, f"{agent.agent} consumes"
        if it.join and isinstance(it.join.by, dict):
            for name in it.join.by:
                yield (*path, "join", "by", name), name, f"a join of {agent.agent} has a key for"
    for path, agent, it in publications(subject):
        yield (*path, "type"), it.type, f"{agent.agent} publishes"
    yield from _types_of_providers(subject)


def _types_of_providers(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, agent, it in providers(subject):
        what = f"a provider of {agent.agent}"
        if isinstance(it, FilteredProvider | SemanticProvider):
            for index, name in enumerate(it.filters.types):
                if name != TICK:
                    yield (*path, "filters", "types", index), name, f"{what} looks for"
        elif isinstance(it, SummaryProvider):
            for name in it.templates:
                if name != TICK:
                    yield (*path, "templates", name), name, f"{what} has a template for"


@rule("BOARD006", "board", "models")
def artifact_is_a_model(subject: Subject) -> Iterator[Hit]:
    for index, it in enumerate(board_of(subject).artifacts):
        if isinstance(it, str) and it not in subject.models:
            path = ("board", "artifacts", index)
            fact = f'the artifact "{it}" is no model of structured_outputs'
            otherwise = "declare the model, or write an object with name and schema"
            yield unknown_name(path, it, subject.models, fact, otherwise)


@rule("BOARD007", "board")
def type_stands_once(subject: Subject) -> Iterator[Hit]:
    met: set[str] = set()
    for index, name in enumerate(known_types(subject)):
        path = ("board", "artifacts", index)
        if name == TICK:
            fact = f"{TICK} is the type of what schedules publish"
            yield Hit(path, fact, hint=("give the type another name",))
        elif name in met:
            fact = f"the board has two types called {name}"
            yield Hit(path, fact, hint=("remove one, or give it another name",))
        met.add(name)
    for path, agent in agents_of(subject):
        types = [it.type for it in agent.publishes]
        for index, name in enumerate(types):
            if name in types[:index]:
                fact = f"{agent.agent} publishes {name} twice"
                hint = "put both into one; fan_out says how many artifacts there are each time"
                yield Hit((*path, "publishes", index, "type"), fact, hint=(hint,))


@rule("BOARD008", "board")
def type_is_used(subject: Subject) -> Iterator[Hit]:
    known = known_types(subject)
    used = {name for _, _, it in subscriptions(subject) for name in it.types}
    used |= {it.type for _, _, it in publications(subject)}
    used |= {nearest(name, known) or name for name in used.difference(known)}
    for index, name in enumerate(known):
        if name not in used:
            fact = f"nobody publishes or consumes {name}"
            hint = "say who consumes it, or remove it from the artifacts"
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


@rule("BOARD013", "board", "code")
def code_is_there(subject: Subject) -> Iterator[Hit]:
    return unfound(subject, references(subject))


@rule("BOARD014", "board")
def package_has_its_code(subject: Subject) -> Iterator[Hit]:
    return only_in_code(subject, references(subject))


@rule("BOARD020", "board")
def agents_named_are_there(subject: Subject) -> Iterator[Hit]:
    known = [it.agent for _, it in agents_of(subject)]
    for path, name, what in _named_agents(subject):
        if name not in known and not name.startswith(OUTSIDE):
            fact = f'{what} "{name}", which is no agent of the board'
            yield unknown_name(path, name, known, fact, "name an agent of the board")


def _named_agents(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, agent, it in subscriptions(subject):
        for index, name in enumerate(it.from_agents):
            yield (*path, "from_agents", index), name, f"{agent.agent} consumes what comes from"
    for path, policy in policies(subject):
        if isinstance(policy, PrivateVisibility):
            for index, name in enumerate(policy.agents):
                yield (*path, "agents", index), name, "an artifact is private to"
    for path, agent, it in providers(subject):
        if isinstance(it, FilteredProvider | SemanticProvider):
            for index, name in enumerate(it.filters.producers):
                what = f"a provider of {agent.agent} looks for what comes from"
                yield (*path, "filters", "producers", index), name, what


@rule("BOARD021", "board")
def somebody_has_the_labels(subject: Subject) -> Iterator[Hit]:
    labels = {label for _, it in agents_of(subject) for label in it.labels}
    for path, policy in policies(subject):
        if not isinstance(policy, LabelledVisibility):
            continue
        for index, label in enumerate(policy.labels):
            if label not in labels:
                yield Hit(
                    (*path, "labels", index),
                    f'no agent has the label "{label}", so nobody sees the artifact',
                    hint=did_you_mean(label, labels) or ("give the label to an agent",),
                )


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
                f"the model of {it.agent} is not told what to do",
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
                fact = f"the context of {agent.agent_name} asks for a board, which is not there"
                hint = "remove this part, or write board.json"
                yield Hit(("agents", number, "context", index), fact, hint=(hint,))
