"""Agents that never speak, gathered under those with which it begins."""

from collections.abc import Collection, Iterator, Mapping

from weft.check.subject import Subject
from weft.engine.routing import link_routing


def gathered(subject: Subject, silent: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield silent agents to whom no other silent agent leads, and all those they lead to.

    Whoever makes the first one speak makes the others speak too, or sees what is left. Of silent
    agents that lead to each other, one stands for all.
    """
    links = _links(subject, silent)
    told: set[str] = set()
    # Whoever leads to others is finished after them, so the last to be finished has none before.
    for agent in reversed(_finished(links)):
        if agent not in told:
            found = _ahead(agent, links)
            yield agent, [other for other in links if other in found - told and other != agent]
            told |= found


def _links(subject: Subject, silent: Collection[str]) -> dict[str, list[str]]:
    """Return to whom each silent agent may hand off, as far as they are silent too."""
    routing = link_routing(subject.spec)
    links = {agent: [routing.otherwise[agent].target] for agent in subject.agents}
    for handoff in subject.spec.handoffs:
        links[handoff.source_agent].append(handoff.target_agent)
    return {
        agent: [target for target in targets if target in silent]
        for agent, targets in links.items()
        if agent in silent
    }


def _finished(links: Mapping[str, list[str]]) -> list[str]:
    """List the agents depth first, each after all it leads to, unless these lead back to it."""
    order: list[str] = []
    met: set[str] = set()
    waiting = [(agent, False) for agent in reversed([*links])]
    while waiting:
        agent, done = waiting.pop()
        if done:
            order.append(agent)
        elif agent not in met:
            met.add(agent)
            waiting.append((agent, True))
            waiting.extend((target, False) for target in links[agent])
    return order


def _ahead(agent: str, links: Mapping[str, list[str]]) -> set[str]:
    found, waiting = {agent}, [agent]
    while waiting:
        fresh = set(links[waiting.pop()]) - found
        found |= fresh
        waiting.extend(fresh)
    return found
