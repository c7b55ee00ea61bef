"""Where limits lead a run: an agent that has used up its replies in a row gives way to the user."""

from weft.check.proof.chart import Edge
from weft.check.proof.happenings import Doubt
from weft.check.proof.sheet import Sheet, settings_of
from weft.check.proof.space import union
from weft.engine.defaults import startup_mode
from weft.engine.routing import Routing
from weft.ids import USER
from weft.spec.orchestrator import Orchestrator


def draw_limits(sheet: Sheet, routing: Routing, orchestrator: Orchestrator) -> None:
    """Draw the ways to the user for the agents that can reply twice in a row."""
    if not orchestrator.human_in_the_loop or startup_mode(orchestrator) == "BackendOnly":
        return
    for agent in sheet.agents:
        if agent in _next_after(routing, agent):
            why = f"{agent} may have used up its replies in a row, and the user is asked"
            doubts = (Doubt(why, f"let {agent} hand over to the user by a rule"),)
            enter, speak = sheet.number("enter", agent), sheet.number("speak", agent)
            about_to = (it for it in sheet.edges if (it.source, it.target) == (enter, speak))
            guard, wait = union(it.guard for it in about_to), sheet.number("wait", agent)
            handed = sheet.changes(settings_of(sheet.at("pass", agent, USER)))
            sheet.edges.append(Edge(enter, wait, guard, handed, doubts, limit=True))


def _next_after(routing: Routing, agent: str) -> set[str]:
    """Return who may be next to speak after an agent, as far as the rules' targets tell."""
    waiting = [rule.target for rule in routing.post.get(agent, ())]
    waiting.append(routing.otherwise[agent].target)
    met: set[str] = set()
    while waiting:
        target = waiting.pop()
        if target not in met:
            met.add(target)
            waiting.extend(rule.target for rule in routing.pre.get(target, ()))
    return met
