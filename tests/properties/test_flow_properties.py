"""Random flows, closed at any moment: they end in a legal state, and nothing is undone twice."""

from collections import Counter
from random import Random

import pytest

from support.effort import TIMES
from support.flow_play import FlowPlay
from support.random_flows import FlowMaker, outcome_of
from weft.engine.events import RequestAnswered, RunEnded, TurnEnded, TurnFailed, TurnStarted
from weft.engine.flow.plan import StepPlan
from weft.engine.reduce import fold

#: A run takes far fewer; one that takes more goes round for ever.
_MOST = 3_000


class Chance(FlowPlay):
    """A run whose steps come out by chance, and which is closed and cut by chance."""

    def __init__(self, seed):
        #: Half of them are never closed: a restart would set going again what hangs.
        self.killed = seed % 2 == 0
        self.random = Random(seed)
        spec = FlowMaker(self.random).spec()
        self.fate = Random(seed + 1)
        super().__init__(spec, go=False)
        self.live()

    def _result(self, effect, name):
        self.does[name] = outcome_of(self.fate, self.state.values_of(effect.turn))
        return super()._result(effect, name)

    def live(self):
        for _ in range(_MOST):
            if self.state.status == "ended":
                return
            self.moment()
        raise AssertionError("it goes on for ever")

    def moment(self):
        share = self.random.random()
        if (
            share < 0.15 and self.killed
        ):  # Killed: what is under way is lost, or was done and is not known.
            if self.open and share < 0.05:
                self.calls.append("lost")
            self.restart()
        elif share < 0.17:
            self.stop(self.random.choice(["now", "after_turn"]))
        elif self.open and share < 0.9:
            self.perform(self.random.randrange(len(self.open)))
        elif self.state.requests and share < 0.95:
            request = self.random.choice(list(self.state.requests))
            self.answer_one(request)
        else:
            self.pass_time()

    def work(self):
        return self

    def answer_one(self, id_):
        turn = self.state.requests[id_].turn
        decision = self.random.choice(["approve", "reject"])
        self.take(RequestAnswered(id_, {"decision": decision}, "boss"), turn=turn)

    def pass_time(self):
        due = self._next_due(self.now + 10_000)
        if due is not None:
            at, data, turn = due
            self.now = max(self.now, at)
            self.take(data, turn=turn, actor="clock")
        else:
            waits = self.open or self.state.requests or self.state.timers
            assert waits or self.state.status == "ended", "nothing would ever happen"


def check(run):
    compiled = run.workflow.compiled
    assert fold(compiled, "run", run.events) == run.state, "the journal says the same"
    assert run.state.outcome in ("completed", "failed", "cancelled")
    assert isinstance(run.events[-1].data, RunEnded)
    for open_ in (run.state.active, run.state.calls, run.state.requests, run.state.timers):
        assert not open_
    started = {
        event.turn: event.data for event in run.events if isinstance(event.data, TurnStarted)
    }
    undone = Counter(value.undoes for value in started.values() if value.undoes)
    assert all(count == 1 for count in undone.values()), "each is undone once"
    for turn in undone:
        assert started[turn].step == next(
            value.step for value in started.values() if value.undoes == turn
        ), "by its own compensation"
    ended = {event.turn for event in run.events if isinstance(event.data, TurnEnded)}
    failed = {event.turn for event in run.events if isinstance(event.data, TurnFailed)}
    assert not ended & failed
    wants = run.spec.flow.compensate_on_cancel
    if run.state.outcome == "failed" or (run.state.outcome == "cancelled" and wants):
        _all_undone(run, started, ended, undone)


def _all_undone(run, started, ended, undone):
    """What was completed and can be undone was undone."""
    nodes = run.workflow.compiled.flow.nodes
    for turn in ended:
        attempt = started[turn]
        node = nodes[attempt.step]
        if attempt.undoes or not isinstance(node, StepPlan) or node.step.compensate is None:
            continue
        assert turn in undone, f"turn {turn} ({attempt.step}) was not undone"


@pytest.mark.parametrize("block", range(10))
def test_random_flows_end_and_undo_what_they_did(block):
    for seed in range(block * 20 * TIMES, (block + 1) * 20 * TIMES):
        try:
            check(Chance(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
