"""Transformation 13.4: ways between agents become handoff rules."""

from collections.abc import Iterator

from weft.generator.compile.wires import Test, Way, Wiring
from weft.spec.agents import ConditionScope, Handoff


def handoffs(wiring: Wiring) -> tuple[Handoff, ...]:
    """Return the rules; those of an agent are asked in the order of its ways."""
    return tuple(_rules(wiring))


def _rules(wiring: Wiring) -> Iterator[Handoff]:
    ranks: dict[str, int] = {}
    for way in wiring.ways:
        ranks[way.source] = ranks.get(way.source, 0) + 1
        yield Handoff(
            source_agent=way.source,
            target_agent=way.target,
            condition=" and ".join(map(_condition, way.tests)) or None,
            condition_scope=_scope(way, wiring),
            priority=ranks[way.source],
            reason=way.reason or None,
        )


def _scope(way: Way, wiring: Wiring) -> ConditionScope:
    """A person's answer within a turn decides before the agent replies; all else, afterwards."""
    tested = {it.variable for it in way.tests}
    approval = wiring.approvals.get(way.source)
    within_turn = approval and approval.variable in tested and not approval.by_reply
    return "pre" if within_turn else "post"


def _condition(test: Test) -> str:
    quoted = [f"'{value}'" for value in test.values]
    if not quoted:
        return test.variable
    if len(quoted) == 1:
        return f"{test.variable} == {quoted[0]}"
    return f"{test.variable} in [{', '.join(quoted)}]"
