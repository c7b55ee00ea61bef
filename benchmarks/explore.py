"""What it costs to explore every way a conversation can go: CPU and memory as workflows grow.

Every agent can set several booleans, and sets and clears them by what it says; its rules test three
of them and hand off. Each size runs in a process of its own, so that the peak memory is its
own. The last column compares the cost per state with that of the size before. More states take
fewer operations each, so it must not grow. Usage: python benchmarks/explore.py [--enforce]
"""

import resource
import subprocess
import sys
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Final

from weft.check.explore import explore
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

#: Agents and booleans.
SIZES: Final = ((5, 3), (10, 8), (20, 12))
#: CPU seconds and megabytes that a size may take, where there is a budget.
BUDGETS: Final = {(20, 12): (2.0, 500.0)}
#: What a state may cost at most, as a share of what it costs in the size before.
MOST_GROWTH: Final = 1.0


def workflow(agents: int, booleans: int) -> WorkflowSpec:
    """Build a workflow in which every state can be reached and an end is always possible."""
    names = [f"Agent{number}" for number in range(agents)]
    variables = {
        f"flag_{flag}": {
            "type": "bool",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [
                    _said(names[(flag + step) % agents], f"{word} {flag}", value=value)
                    for step in range(0, agents, 3)
                    for word, value in (("SET", True), ("CLEAR", False))
                ],
            },
        }
        for flag in range(booleans)
    }
    handoffs = [
        {
            "source_agent": name,
            "target_agent": names[(number + step) % agents],
            "condition": f"flag_{(number + step) % booleans} and not flag_{number % booleans}",
            "priority": step,
        }
        for number, name in enumerate(names)
        for step in (1, 2, 3)
    ]
    handoffs += [
        {"source_agent": name, "target_agent": "terminate", "condition": "flag_0 and flag_1"}
        for name in names
    ]
    handoffs += [
        {"source_agent": name, "target_agent": names[(number + 1) % agents]}
        for number, name in enumerate(names)
    ]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Measured", "initial_agent": names[0]},
            "agents": [{"agent_name": name} for name in names],
            "variables": variables,
            "handoffs": handoffs,
        }
    )


def _said(agent: str, text: str, *, value: bool) -> dict[str, object]:
    return {"type": "agent_text", "agent": agent, "match": {"equals": text}, "value": value}


@dataclass(frozen=True)
class Cost:
    """What one exploration took."""

    states: int
    seconds: float
    megabytes: float


def measure(agents: int, booleans: int) -> Cost:
    """Explore once to warm up, then take the best of as many as fit into a second."""
    spec = workflow(agents, booleans)
    found = explore(Subject(spec))
    if found.status != "can end":
        sys.exit(f"cannot measure: the workflow is {found.status}: {found.reason}")
    rounds: list[float] = []
    while sum(rounds) < 1:
        begin = time.process_time()
        explore(Subject(spec))
        rounds.append(time.process_time() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(found.states, min(rounds), peak)


def measure_apart(agents: int, booleans: int) -> Cost:
    """Measure in a fresh interpreter."""
    command = [sys.executable, __file__, "--size", str(agents), str(booleans)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    states, seconds, megabytes = done.stdout.split()
    return Cost(int(states), float(seconds), float(megabytes))


def report() -> bool:
    """Print one line per size and tell whether all are within budget."""
    within = True
    before: Cost | None = None
    print(f"{'size':>8} {'states':>9} {'CPU ms':>9} {'us/state':>9} {'MB':>7} {'growth':>7}")
    for size in SIZES:
        cost = measure_apart(*size)
        each = cost.seconds / cost.states
        growth = each / (before.seconds / before.states) if before else 0.0
        seconds, megabytes = BUDGETS.get(size, (float("inf"), float("inf")))
        over = cost.seconds > seconds or cost.megabytes > megabytes or growth > MOST_GROWTH
        within = within and not over
        print(
            f"{size[0]:>5}x{size[1]:<2} {cost.states:>9} {cost.seconds * 1000:9.2f} "
            f"{each * 1e6:9.3f} {cost.megabytes:7.1f} {growth:7.2f} {'over' if over else ''}"
        )
        before = cost
    return within


def main() -> int:
    """Measure, print, and fail on request when a budget is exceeded."""
    parser = ArgumentParser(description="Measure what it costs to explore a workflow.")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    parser.add_argument("--size", nargs=2, type=int, help="measure one size, for other programs")
    options = parser.parse_args()
    if options.size:
        cost = measure(*options.size)
        print(cost.states, cost.seconds, cost.megabytes)
        return 0
    within = report()
    return 1 if options.enforce and not within else 0


if __name__ == "__main__":
    sys.exit(main())
