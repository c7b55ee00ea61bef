"""A workflow as nodes and edges, the input of all drawings."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from weft.diagrams.board_graph import board_graph
from weft.diagrams.flow_graph import flow_graph
from weft.diagrams.nodes import (
    END_KEY,
    NAME_LENGTH,
    START_KEY,
    USER_KEY,
    WORKFLOW_LENGTH,
    Edge,
    Graph,
    Node,
    agent_key,
    condition_words,
    describe,
    notes_of,
    short_label,
    start_words,
)
from weft.engine.compile import handoff_tools, servers_of
from weft.engine.conversation.routing import (
    GroupRules,
    Route,
    Routing,
    RoutingRule,
    link_routing,
    startup_mode,
)
from weft.ids import TERMINATE, USER
from weft.spec.agents import Agent
from weft.spec.workflow import WorkflowSpec

#: How the members of a group take their turns.
SIDE_BY_SIDE: Final = "side by side"

_SPEAKS_FIRST: Final = {
    "UserDriven": "the user speaks first",
    "AgentDriven": "the agent speaks first",
    "BackendOnly": "no user takes part",
}


def graph(spec: WorkflowSpec) -> Graph:
    """Return the nodes and edges of a conversation, board or flow."""
    if spec.board is not None:
        return board_graph(spec, spec.board)
    if spec.flow is not None:
        return flow_graph(spec, spec.flow)
    routing = _routing_without_conditions(spec)
    edges = tuple(_edges(spec, routing))
    return Graph(
        title=short_label(spec.orchestrator.workflow_name, NAME_LENGTH),
        description=describe(spec.orchestrator.description, WORKFLOW_LENGTH),
        pattern=spec.orchestrator.orchestration_pattern,
        nodes=tuple(_nodes(spec, routing, edges)),
        edges=edges,
    )


def _target_key(routing: Routing, name: str) -> str:
    return {USER: USER_KEY, TERMINATE: END_KEY}.get(name) or _turn_key(routing, name)


def _turn_key(routing: Routing, name: str) -> str:
    """Return the key of an agent, or of the group that begins when it is handed off to."""
    group = routing.groups.get(name)
    return agent_key(group.name if group else name)


def _groups(routing: Routing) -> list[GroupRules]:
    return list({group.name: group for group in routing.groups.values()}.values())


def _nodes(spec: WorkflowSpec, routing: Routing, edges: tuple[Edge, ...]) -> Iterator[Node]:
    yield Node(
        START_KEY, "start", "start", start_words(spec.orchestrator.trigger), notes_of(spec, None)
    )
    named: set[str] = set()
    for group in _groups(routing):
        key, title = agent_key(group.name), short_label(group.name, NAME_LENGTH)
        named.add(key)
        yield Node(key, "agent", title, f"side by side, merge {group.merge}")
    for agent in spec.agents:
        name, key = agent.agent_name, agent_key(agent.agent_name)
        if key not in named:
            title = short_label(name, NAME_LENGTH)
            about = describe(agent.description)
            notes = (
                *([about] if about else ()),
                *notes_of(spec, name),
                *_offered_tools(spec, agent),
            )
            yield Node(key, "agent", title, agent.agent_type, notes)
        named.add(key)
    used = dict.fromkeys(key for edge in edges for key in (edge.source, edge.target))
    for key in used:
        if key not in named and key not in (START_KEY, USER_KEY, END_KEY):
            title = short_label(key.removeprefix(agent_key("")), NAME_LENGTH)
            yield Node(key, "undeclared", title, "not declared")
    if USER_KEY in used:
        yield Node(USER_KEY, "user", "user")
    if END_KEY in used:
        yield Node(END_KEY, "end", "end")


def _offered_tools(spec: WorkflowSpec, agent: Agent) -> Iterator[str]:
    """Yield the tool servers an agent may use, and the tools by which its model hands off."""
    for name in servers_of(spec, agent.agent_name):
        yield short_label(f"tool server: {name}")
    targets = handoff_tools(spec, agent)
    if targets:
        yield short_label(f"may hand off by a tool: {', '.join(targets.values())}")


def _edges(spec: WorkflowSpec, routing: Routing) -> Iterator[Edge]:
    orchestrator = spec.orchestrator
    opening = _SPEAKS_FIRST[startup_mode(orchestrator)]
    yield Edge(START_KEY, _turn_key(routing, orchestrator.initial_agent), "start", opening)
    for group in _groups(routing):
        yield from _group_edges(routing, group)
    alone = {orchestrator.initial_agent, *(handoff.target_agent for handoff in spec.handoffs)}
    alone -= routing.groups.keys()
    members = {member for group in _groups(routing) for member in group.members} - alone
    agents = [agent.agent_name for agent in spec.agents]
    for name in dict.fromkeys([*agents, *routing.pre, *routing.post]):
        for rule in routing.pre.get(name, ()):
            yield _rule_edge(spec, routing, rule)
        after = [_rule_edge(spec, routing, rule) for rule in routing.post.get(name, ())]
        otherwise = routing.otherwise.get(name) if name not in members else None
        if otherwise and not any(edge.kind == "fallback" for edge in after):
            after.append(_default_edge(routing, name, otherwise, alone=not after))
        if len(after) == 1 and after[0].kind == "fallback":
            after = [replace(after[0], label="always")]
        yield from after


def _group_edges(routing: Routing, group: GroupRules) -> Iterator[Edge]:
    """Yield the handoffs to all members of a group, and from each to what comes after it."""
    target = _target_key(routing, group.next)
    done = "by the first who is done" if group.merge == "first" else "when all are done"
    for member in dict.fromkeys(group.members):
        yield Edge(agent_key(group.name), agent_key(member), "default", SIDE_BY_SIDE)
        yield Edge(agent_key(member), target, "joined", done)


def _routing_without_conditions(spec: WorkflowSpec) -> Routing:
    """Return the engine's routing without parsing conditions, so that invalid ones are drawn."""
    judged = tuple(rule.model_copy(update={"condition_type": "llm"}) for rule in spec.handoffs)
    return link_routing(spec.model_copy(update={"handoffs": judged}))


def _rule_edge(spec: WorkflowSpec, routing: Routing, rule: RoutingRule) -> Edge:
    handoff = spec.handoffs[rule.index]
    return Edge(
        source=agent_key(handoff.source_agent),
        target=_target_key(routing, handoff.target_agent),
        kind="rule" if rule.judged else "fallback",
        label=condition_words(handoff),
        before=handoff.condition_scope == "pre",
        reason=short_label(handoff.reason) if handoff.reason else "",
    )


_BY: Final[Mapping[str, str]] = {"pattern": "by the pattern", "default": "by default"}


def _default_edge(routing: Routing, name: str, route: Route, *, alone: bool) -> Edge:
    words = _BY[route.why] if alone else f"otherwise, {_BY[route.why]}"
    return Edge(agent_key(name), _target_key(routing, route.target), "default", words)
