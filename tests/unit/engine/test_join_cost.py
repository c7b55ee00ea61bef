"""What an artifact costs does not grow with the number of open windows.

Work is counted and not timed: lines of Python that are executed, and bytes that are allocated.
"""

import sys
import tracemalloc
from functools import cache
from statistics import median

import pytest

from support.board_world import linked, never
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import artifact_event
from weft.engine.events import RunStarted
from weft.engine.incoming import due_events
from weft.engine.rows import batch
from weft.engine.state import State
from weft.runtime.runs.decision import NewEvent, decide
from weft.spec.workflow import WorkflowSpec

FEW, MANY = 200, 3200


@cache
def board(**join):
    subscription = {"types": ["A", "B"], "join": {"by": "k", **join}}
    engine = {"kind": "function", "function": "local:never"}
    agent = {"agent": "Ann", "engines": [engine], "consumes": [subscription], "publishes": []}
    spec = {
        "orchestrator": {"workflow_name": "Board"},
        "agents": [{"agent_name": "Ann"}],
        "board": {
            "artifacts": [{"name": "A", "schema": {}}, {"name": "B", "schema": {}}],
            "agents": [{**agent, "context": {"kind": "empty"}}],
        },
    }
    return linked(WorkflowSpec.model_validate(spec), {"local:never": never})


class Correlation:
    """A run of a board with some windows open."""

    def __init__(self, workflow, keys):
        self.workflow, self.now, self.made = workflow, 1000, 0
        self.state = State("r")
        start = RunStarted(workflow.name, workflow.digest, "app", "ada", {}, correlation="c")
        self.write(NewEvent("user:ada", start))
        for key in range(keys):
            self.publish("A", key)

    def write(self, new):
        self.now += 1
        decision = decide(self.workflow, self.state, [new], self.now)
        written = batch(self.state, decision.state, decision.events, id="b")
        self.state = decision.state
        return written

    def publish(self, type_, key):
        self.made += 1
        draft = {"type": type_, "payload": {"k": str(key)}, "id": f"a{self.made}"}
        data = artifact_event(rules_of(self.workflow.compiled), "app", draft, by="user:ada")
        return self.write(NewEvent("user:ada", data))

    def fire(self):
        (due, *_) = due_events(self.state, self.state.timers.due_at)
        return self.write(NewEvent("clock", due.data))


def lines_of(work):
    """Count the lines of Python that are executed."""
    count = 0

    def trace(_frame, kind, _argument):
        nonlocal count
        count += kind == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def bytes_of(work):
    """Return the most bytes that are allocated at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def open_window(run, number):
    run.publish("A", f"new {number}")


def complete_window(run, number):
    run.publish("B", number * 3 + 50)


def expire_window(run, _number):
    run.fire()


@pytest.mark.parametrize("measure", [lines_of, bytes_of])
@pytest.mark.parametrize("work", [open_window, complete_window, expire_window])
@pytest.mark.parametrize("limit", [{"within_seconds": 1000}, {"within_count": 10_000}])
def test_an_artifact_costs_the_same_however_many_windows_are_open(limit, work, measure):
    if work is expire_window and "within_count" in limit:
        limit = {"within_seconds": 1000, **limit}
    cost = {}
    for count in (FEW, MANY):
        run = Correlation(board(**limit), count)
        costs = [measure(lambda: work(run, number)) for number in range(15)]  # noqa: B023 - at once
        cost[count] = median(costs)
    assert cost[MANY] <= 1.5 * cost[FEW], cost
