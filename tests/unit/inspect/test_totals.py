"""What is counted of the events of runs, for metrics and `weft top`."""

import pytest

from weft.engine import events as kinds
from weft.engine.events import Event, Usage
from weft.inspect import totals
from weft.inspect.totals import (
    BOUNDS,
    HANDOFFS,
    MAX_SERIES,
    MODEL_SECONDS,
    OTHER,
    RUNS,
    TOKENS,
    TOOL_CALLS,
    TOOL_ERRORS,
    TOOL_SECONDS,
    TURNS,
    UNKNOWN_TOOL,
    Durations,
    RunTotals,
    Tally,
)


class Journal:
    """Counts events of one run, with numbers and times."""

    def __init__(self, counted=None, run="r1"):
        self.totals = counted or RunTotals()
        self.run = run
        self.seq = 0
        self.at = 1000

    def add(self, data, *, after=0, actor="x", cause=0, turn=1):
        """Count an event that comes some milliseconds later; return its number."""
        self.seq += 1
        self.at += after
        event = Event(self.seq, self.at, actor, cause, turn, data)
        self.totals.add("local", self.run, "Desk", [event])
        return self.seq

    def times(self, metric):
        """Return the number and the sum of durations by labels."""
        found = self.totals.durations.get(metric, {})
        return {labels: (sum(each.counts), each.seconds) for labels, each in found.items()}


def assembled():
    return kinds.ContextAssembled("Clerk", 1, {}, "")


def test_turns_runs_and_handoffs_are_counted_by_outcome_and_rule():
    journal = Journal()
    for data in (
        kinds.TurnStarted("Clerk"),
        kinds.TurnEnded("Clerk"),
        kinds.HandedOff("Clerk", "Helper", "rule", 3),
        kinds.HandedOff("Helper", "user", "default"),
        kinds.TurnStarted("Clerk"),
        kinds.TurnFailed("Clerk", "it is late", "deadline"),
        kinds.RunEnded("failed", "it is late"),
    ):
        journal.add(data)
    counts = journal.totals.counts
    assert counts[TURNS] == {("Desk", "Clerk", "ended"): 1, ("Desk", "Clerk", "deadline"): 1}
    assert counts[HANDOFFS] == {
        ("Desk", "Clerk", "Helper", "3"): 1,
        ("Desk", "Helper", "user", "default"): 1,
    }
    assert counts[RUNS] == {("Desk", "failed"): 1}


def test_model_calls_have_durations_and_tokens_of_their_agents():
    journal = Journal()
    journal.add(kinds.TurnStarted("Clerk"))
    call = journal.add(assembled())
    reply = kinds.ModelReplied(1, "hi", usage=Usage(7, 2), model="mock")
    journal.add(reply, after=300, cause=call, actor="agent:Clerk")
    call = journal.add(assembled())
    journal.add(kinds.ModelFailed(1, "no answer"), after=2000, cause=call)
    consulted = kinds.ModelConsulted("c1", "", "yes", Usage(5, None), "mock")
    journal.add(consulted, actor="tool:ask")
    judged = kinds.ConditionJudged(0, holds=True, text="", usage=Usage(None, 1))
    journal.add(judged)
    assert journal.times(MODEL_SECONDS) == {("mock", "replied"): (1, 0.3), ("", "failed"): (1, 2.0)}
    assert journal.totals.counts[TOKENS] == {
        ("Desk", "Clerk", "input"): 12,
        ("Desk", "Clerk", "output"): 3,
    }


def test_tools_have_durations_and_errors_by_kind():
    journal = Journal()
    for id_, kind in (("a", ""), ("b", "refused"), ("c", "timeout")):
        journal.add(kinds.ToolCalled(id_, "look_up", {}))
        result = kinds.ToolFailed(id_, "no", kind) if kind else kinds.ToolReturned(id_, 1)
        journal.add(result, after=500, actor="tool:look_up")
    assert journal.totals.counts[TOOL_CALLS] == {("Desk", "look_up"): 3}
    assert journal.totals.counts[TOOL_ERRORS] == {
        ("Desk", "look_up", "refused"): 1,
        ("Desk", "look_up", "timeout"): 1,
    }
    assert journal.times(TOOL_SECONDS) == {("Desk", "look_up"): (3, 1.5)}


def test_a_tool_that_asked_a_person_has_no_duration():
    journal = Journal()
    journal.add(kinds.ToolCalled("a", "approve", {}))
    journal.add(kinds.RequestOpened("r1:2", "ui", "Clerk", "approve", "a"), after=10)
    journal.add(kinds.ToolReturned("a", True), after=3_600_000)
    assert journal.totals.counts[TOOL_CALLS] == {("Desk", "approve"): 1}
    assert journal.times(TOOL_SECONDS) == {}


def test_names_of_tools_that_models_make_up_are_no_labels():
    journal = Journal()
    for number in range(3):
        journal.add(kinds.ToolCalled(f"a{number}", f"made_up_{number}", {}))
        journal.add(kinds.ToolFailed(f"a{number}", "unknown tool", "unknown"))
    assert journal.totals.counts[TOOL_CALLS] == {("Desk", UNKNOWN_TOOL): 3}
    assert journal.totals.counts[TOOL_ERRORS] == {("Desk", UNKNOWN_TOOL, "unknown"): 3}


def test_what_began_before_has_no_duration():
    journal = Journal()
    journal.add(kinds.ModelReplied(1, "hi", model="mock"), cause=17, actor="agent:Clerk")
    journal.add(kinds.ToolReturned("a", 1), actor="tool:look_up")
    assert journal.totals.durations == {}
    assert journal.totals.counts == {TOOL_CALLS: {("Desk", "look_up"): 1}}


def test_runs_are_kept_apart_and_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(totals, "_MAX_RUNS", 2)
    counted = RunTotals()
    first, second, third = (Journal(counted, run) for run in ("r1", "r2", "r3"))
    for journal, tool in ((first, "one"), (second, "two"), (third, "three")):
        journal.add(kinds.ToolCalled("a", tool, {}))
    for journal in (third, second, first):
        journal.add(kinds.ToolReturned("a", 1), after=1000, actor="tool:x")
    # What the forgotten run has begun is not known any more: only the actor of its result.
    assert set(counted.counts[TOOL_CALLS]) == {
        ("Desk", "x"),
        ("Desk", "two"),
        ("Desk", "three"),
    }
    assert second.times(TOOL_SECONDS) == {
        ("Desk", "two"): (1, 1.0),
        ("Desk", "three"): (1, 1.0),
    }


def test_an_ended_run_is_forgotten():
    journal = Journal()
    journal.add(kinds.ToolCalled("a", "look_up", {}))
    journal.add(kinds.RunEnded("cancelled", ""))
    assert len(journal.totals._runs) == 0


def test_series_beyond_the_limit_are_counted_together():
    tally = Tally()
    for number in range(MAX_SERIES + 5):
        tally.count(TURNS, ("Desk", f"agent {number}", "ended"))
        tally.time(TOOL_SECONDS, ("Desk", f"tool {number}"), 1.0)
    tally.count(TURNS, ("Desk", "agent 0", "ended"))
    assert len(tally.counts[TURNS]) == len(tally.durations[TOOL_SECONDS]) == MAX_SERIES + 1
    assert tally.counts[TURNS][(OTHER,) * 3] == 5
    assert tally.counts[TURNS]["Desk", "agent 0", "ended"] == 2
    other = tally.durations[TOOL_SECONDS][(OTHER,) * 2]
    assert (sum(other.counts), other.seconds) == (5, 5.0)


@pytest.mark.parametrize(
    ("seconds", "place"),
    [(0, 0), (0.01, 0), (0.011, 1), (300, len(BOUNDS) - 1), (301, len(BOUNDS))],
)
def test_a_duration_is_in_the_first_range_that_reaches_it(seconds, place):
    durations = Durations()
    durations.add(seconds)
    assert durations.counts.index(1) == place
    assert (sum(durations.counts), durations.seconds) == (1, seconds)
