"""What an artifact costs on a board whose join has many open windows.

    python benchmarks/joins.py [--enforce]

Each artifact is decided and becomes a batch, as in a run; nothing is stored. Half of the artifacts
open a window, the others complete one. Every window has a timer.
"""

import sys
import time
from typing import Final

from weft.adapters.python_tools.loader import PythonToolLoader
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import artifact_event
from weft.engine.events import RunStarted
from weft.engine.rows import batch
from weft.engine.state import State
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.workflow import Linking, Workflow, link
from weft.spec.workflow import WorkflowSpec

FEW, MANY = 500, 8_000
ARTIFACTS: Final = 400
ROUNDS: Final = 5
GROWTH_BUDGET: Final = 3.0


async def pair(inputs: object) -> None:
    """Stand for the work of the agent: it is never called here."""


def board(loader: PythonToolLoader) -> Workflow:
    """Return a board whose agent wants an order and its payment, within an hour."""
    subscription = {
        "types": ["Order", "Payment"],
        "join": {"by": "number", "within_seconds": 3600},
    }
    spec = {
        "orchestrator": {"workflow_name": "Shop"},
        "agents": [{"agent_name": "Packer"}],
        "board": {
            "artifacts": [{"name": name, "schema": {}} for name in ("Order", "Payment")],
            "agents": [
                {
                    "agent": "Packer",
                    "engines": [{"kind": "function", "function": "local:pair"}],
                    "consumes": [subscription],
                    "context": {"kind": "empty"},
                    "publishes": [],
                }
            ],
        },
    }
    objects = {"local:pair": pair}
    return link(WorkflowSpec.model_validate(spec), {}, loader, Linking(objects=objects))


class Correlation:
    """One run of the board."""

    def __init__(self, workflow: Workflow, windows: int) -> None:
        self._workflow = workflow
        self._rules = rules_of(workflow.compiled)
        self._now = 1_000
        self.state = State("run")
        begun = RunStarted(workflow.name, workflow.digest, "app", "ada", {}, correlation="c")
        self._write(NewEvent("user:ada", begun))
        for number in range(windows):
            self.publish("Order", number)

    def publish(self, type_: str, number: int) -> None:
        """Put an artifact on the board."""
        self._now += 1
        draft = {"type": type_, "payload": {"number": number}, "id": f"a{self._now}"}
        self._write(NewEvent("user:ada", artifact_event(self._rules, "app", draft, by="user:ada")))

    def _write(self, new: NewEvent) -> None:
        decision = decide(self._workflow, self.state, [new], self._now)
        batch(self.state, decision.state, decision.events, id="batch")
        self.state = decision.state


def cost(workflow: Workflow, windows: int) -> float:
    """Return the microseconds of CPU for one artifact while so many windows are open."""
    costs: list[float] = []
    for _ in range(ROUNDS):
        run = Correlation(workflow, windows)
        before = time.process_time()
        for number in range(ARTIFACTS // 2):
            run.publish("Order", windows + number)
            run.publish("Payment", number)
        costs.append((time.process_time() - before) / ARTIFACTS * 1e6)
    return min(costs)


def main() -> int:
    """Measure, print, and fail with --enforce if the budget is exceeded."""
    loader = PythonToolLoader()
    workflow = board(loader)
    few, many = cost(workflow, FEW), cost(workflow, MANY)
    growth = many / few
    print(f"artifact with {FEW:>6,} open windows: {few:6.0f} us")
    print(f"artifact with {MANY:>6,} open windows: {many:6.0f} us")
    print(f"{MANY:,} / {FEW:,}: {growth:.2f} (budget {GROWTH_BUDGET:g})")
    loader.close()
    return 1 if "--enforce" in sys.argv and growth > GROWTH_BUDGET else 0


if __name__ == "__main__":
    sys.exit(main())
