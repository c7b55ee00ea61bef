"""A workflow as nodes and edges, whichever form it is drawn in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from weft.diagrams.wording import (
    NAME_LENGTH,
    WORKFLOW_LENGTH,
    condition_words,
    described,
    shown,
    start_words,
)
from weft.engine.compiled import handoff_tools, servers_of
from weft.engine.defaults import startup_mode
from weft.engine.routing import GroupRules, Route, Routing, RoutingRule, link_routing
from weft.ids import TERMINATE, USER
from weft.spec.agents import Agent
from weft.spec.tools import UiTool
from weft.spec.workflow import WorkflowSpec

NodeKind: TypeAlias = Literal["start", "agent", "undeclared", "user", "end"]
EdgeKind: TypeAlias = Literal["start", "rule", "fallback", "default"]

#: Keys of the nodes that are no agents. Keys of agents begin with "agent:".
START_KEY: Final = "start"
USER_KEY: Final = "user"
END_KEY: Final = "end"

#: How the members of a group take their turns.
SIDE_BY_SIDE: Final = "side by side"

_SPEAKS_FIRST: Final = {
    "UserDriven": "the user speaks first",
    "AgentDriven": "the agent speaks first",
    "BackendOnly": "no user takes part",
}


@dataclass(frozen=True, slots=True)
class Node:
    """One party: `role` is an agent's type or how the run begins.

    `notes` are what it is for and the tools to mention.
    """

    key: str
    kind: NodeKind
    title: str
    role: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """One handoff; `before` means before the source replies."""

    source: str
    target: str
    kind: EdgeKind
    label: str
    before: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A workflow to be drawn. Edges of one node stand in the order in which they are tried."""

    title: str
    description: str
    pattern: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def leaving(self) -> dict[str, list[Edge]]:
        found: dict[str, list[Edge]] = {node.key: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.source].append(edge)
        return found


def graph(spec: WorkflowSpec) -> Graph:
    """Return the parties of a workflow and every handoff between them."""
    routing = _unread_routing(spec)
    edges = tuple(_edges(spec, routing))
    return Graph(
        title=shown(spec.orchestrator.workflow_name, NAME_LENGTH),
        description=described(spec.orchestrator.description, WORKFLOW_LENGTH),
        pattern=spec.orchestrator.orchestration_pattern,
        nodes=tuple(_nodes(spec, routing, edges)),
        edges=edges,
    )


def agent_key(name: str) -> str:
    return f"agent:{name}"


def reached(drawn: Graph) -> list[str]:
    """Return the keys that can be reached from the start, nearest first."""
    leaving = drawn.leaving()
    found = {START_KEY: None}
    pending = [START_KEY]
    for key in pending:
        fresh = [edge.target for edge in leaving[key] if edge.target not in found]
        pending += dict.fromkeys(fresh)
        found.update(dict.fromkeys(fresh))
    return list(found)


def _target_key(routing: Routing, name: str) -> str:
    return {USER: USER_KEY, TERMINATE: END_KEY}.get(name) or _turn_key(routing, name)


def _turn_key(routing: Routing, name: str) -> str:
    """Return the key of an agent, or of the group that begins when it is handed off to."""
    group = routing.groups.get(name)
    return agent_key(group.name if group else name)


def _groups(routing: Routing) -> list[GroupRules]:
    return list({it.name: it for it in routing.groups.values()}.values())


def _nodes(spec: WorkflowSpec, routing: Routing, edges: tuple[Edge, ...]) -> Iterator[Node]:
    yield Node(
        START_KEY, "start", "start", start_words(spec.orchestrator.trigger), _notes(spec, None)
    )
    named: set[str] = set()
    for group in _groups(routing):
        key, title = agent_key(group.name), shown(group.name, NAME_LENGTH)
        named.add(key)
        yield Node(key, "agent", title, f"side by side, merge {group.merge}")
    for agent in spec.agents:
        name, key = agent.agent_name, agent_key(agent.agent_name)
        if key not in named:
            title = shown(name, NAME_LENGTH)
            about = described(agent.description)
            notes = (*([about] if about else ()), *_notes(spec, name), *_offered(spec, agent))
            yield Node(key, "agent", title, agent.agent_type, notes)
        named.add(key)
    used = dict.fromkeys(key for edge in edges for key in (edge.source, edge.target))
    for key in used:
        if key not in named and key not in (START_KEY, USER_KEY, END_KEY):
            title = shown(key.removeprefix(agent_key("")), NAME_LENGTH)
            yield Node(key, "undeclared", title, "not declared")
    if USER_KEY in used:
        yield Node(USER_KEY, "user", "user")
    if END_KEY in used:
        yield Node(END_KEY, "end", "end")


def _notes(spec: WorkflowSpec, agent: str | None) -> tuple[str, ...]:
    """List the UI tools and lifecycle tools of an agent; None asks for those of the run."""
    asking = [
        shown(f"asks: {tool.function} ({tool.ui.component}, {tool.ui.mode})")
        for tool in spec.tools
        if isinstance(tool, UiTool) and tool.agent == agent
    ]
    called = [
        shown(f"{tool.trigger}: {tool.function}")
        for tool in spec.lifecycle_tools
        if tool.agent == agent
    ]
    return (*asking, *called)


def _offered(spec: WorkflowSpec, agent: Agent) -> Iterator[str]:
    """Yield the tool servers an agent may use, and the tools by which its model hands off."""
    for name in servers_of(spec, agent.agent_name):
        yield shown(f"tool server: {name}")
    targets = handoff_tools(spec, agent)
    if targets:
        yield shown(f"may hand off by a tool: {', '.join(targets.values())}")


def _edges(spec: WorkflowSpec, routing: Routing) -> Iterator[Edge]:
    orchestrator = spec.orchestrator
    opening = _SPEAKS_FIRST[startup_mode(orchestrator)]
    yield Edge(START_KEY, _turn_key(routing, orchestrator.initial_agent), "start", opening)
    for group in _groups(routing):
        yield from _side_by_side(routing, group)
    alone = {orchestrator.initial_agent, *(handoff.target_agent for handoff in spec.handoffs)}
    alone -= routing.groups.keys()
    members = {member for it in _groups(routing) for member in it.members} - alone
    agents = [agent.agent_name for agent in spec.agents]
    for name in dict.fromkeys([*agents, *routing.pre, *routing.post]):
        for rule in routing.pre.get(name, ()):
            yield _ruled(spec, routing, rule)
        after = [_ruled(spec, routing, rule) for rule in routing.post.get(name, ())]
        otherwise = routing.otherwise.get(name) if name not in members else None
        if otherwise and not any(edge.kind == "fallback" for edge in after):
            after.append(_default(routing, name, otherwise, alone=not after))
        if len(after) == 1 and after[0].kind == "fallback":
            after = [replace(after[0], label="always")]
        yield from after


def _side_by_side(routing: Routing, group: GroupRules) -> Iterator[Edge]:
    """Yield the handoffs to all members of a group, and from each to what comes after it."""
    target = _target_key(routing, group.next)
    done = "by the first who is done" if group.merge == "first" else "when all are done"
    for member in dict.fromkeys(group.members):
        yield Edge(agent_key(group.name), agent_key(member), "default", SIDE_BY_SIDE)
        yield Edge(agent_key(member), target, "default", done)


def _unread_routing(spec: WorkflowSpec) -> Routing:
    """Let the engine sort the rules, with no condition parsed: a faulty one is drawn as well."""
    judged = tuple(rule.model_copy(update={"condition_type": "llm"}) for rule in spec.handoffs)
    return link_routing(spec.model_copy(update={"handoffs": judged}))


def _ruled(spec: WorkflowSpec, routing: Routing, rule: RoutingRule) -> Edge:
    handoff = spec.handoffs[rule.index]
    return Edge(
        source=agent_key(handoff.source_agent),
        target=_target_key(routing, handoff.target_agent),
        kind="rule" if rule.judged else "fallback",
        label=condition_words(handoff),
        before=handoff.condition_scope == "pre",
        reason=shown(handoff.reason) if handoff.reason else "",
    )


_BY: Final[Mapping[str, str]] = {"pattern": "by the pattern", "default": "by default"}


def _default(routing: Routing, name: str, route: Route, *, alone: bool) -> Edge:
    words = _BY[route.why] if alone else f"otherwise, {_BY[route.why]}"
    return Edge(agent_key(name), _target_key(routing, route.target), "default", words)
