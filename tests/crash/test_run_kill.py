"""A run whose process is killed at any step goes on in the next one as if nothing had been."""

import json
import signal
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from support.effort import TIMES

KILLER = Path(__file__).with_name("run_killer.py")


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    """Let a workflow be killed at each of its steps, once; give what came of each."""

    @cache
    def told(play, crowd=1):
        command = [
            sys.executable,
            str(KILLER),
            play,
            str(tmp_path_factory.mktemp(play)),
            str(crowd),
        ]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=100 * TIMES
        )
        assert done.returncode == 0, done.stderr
        unexpected = [line for line in done.stderr.splitlines() if "performed twice" not in line]
        assert not unexpected
        return [json.loads(line) for line in done.stdout.splitlines()]

    return told


def results(death):
    """Return the keys of the calls whose results are recorded: the events that caused them."""
    done = ("ModelReplied", "ModelFailed", "ToolReturned", "ToolFailed")
    return {
        f"app/{run}:{cause}"
        for run, events in death["events"].items()
        for _seq, _actor, cause, kind, _data in events
        if kind in done
    }


def written(death):
    """Return the keys that recorded events give."""
    return {f"app/{run}:{event[0]}" for run, events in death["events"].items() for event in events}


def expect_as_if_nothing_had_been(undisturbed, disturbed):
    steps = undisturbed["end"]["steps"]
    for story in disturbed:
        where = [steps[item - 1] for item in story["fatal"]]
        assert story["exits"] == [-signal.SIGKILL] * len(where) + [0], where
        assert story["end"]["runs"] == undisturbed["end"]["runs"], where
        expect_no_repetition(story, undisturbed, where)
        expect_nothing_ahead_of_the_journal(story, where)


def expect_no_repetition(story, undisturbed, where):
    """Check that only what was not recorded was done again, and under the same key."""
    assert set(story["effects"]) == set(undisturbed["effects"]), where
    expect_repeated_only_if_unrecorded(story, where)


def expect_repeated_only_if_unrecorded(story, where):
    for effect, times in Counter(story["effects"]).items():
        key = effect.split()[0]
        unrecorded = [key not in results(death) for death in story["deaths"]]
        assert times <= 1 + sum(unrecorded), (where, effect)


def expect_nothing_ahead_of_the_journal(story, where):
    """Check that whatever had been done was allowed by an event that had been written before."""
    for death in story["deaths"]:
        assert {effect.split()[0] for effect in death["effects"]} <= written(death), where


def expect_enough_kills(undisturbed, disturbed):
    """Check that a process died at every step, or at every fourth one in the suite."""
    steps = len(undisturbed["end"]["steps"])
    assert len(disturbed) == steps + 1 if TIMES > 1 else len(disturbed) > steps // 4


@pytest.mark.parametrize("play", ["handover", "questions", "plans"])
def test_killed_at_every_step(stories, play):
    undisturbed, *disturbed = stories(play)
    expect_enough_kills(undisturbed, disturbed)
    assert undisturbed["end"]["runs"]["run0"]["open"] == 0
    expect_as_if_nothing_had_been(undisturbed, disturbed)


@pytest.mark.parametrize("play", ["handover", "plans"])
def test_many_runs_in_a_process_that_is_killed_again_and_again(stories, play):
    undisturbed, *disturbed = stories(play, 6)
    assert len(undisturbed["end"]["runs"]) == 6
    assert len(disturbed) == 2 * TIMES
    expect_as_if_nothing_had_been(undisturbed, disturbed)


#: What differs from run to run because members of a group are at work at the same time.
NUMBERED = {
    "ContextAssembled": ("manifest",),
    "RequestOpened": ("id",),
    "RequestAnswered": ("id",),
}


def by_turn(run):
    """Return what happened in each turn, without the numbers that depend on who was faster."""
    turns = {}
    for _seq, actor, _cause, turn, kind, data in run["events"]:
        kept = {name: entry for name, entry in data.items() if name not in NUMBERED.get(kind, ())}
        turns.setdefault(turn, []).append([actor, kind, kept])
    return turns


def done_by(story):
    """Return what was done, each with the keys under which it was."""
    keys = {}
    for effect in story["effects"]:
        key, what = effect.split(maxsplit=1)
        keys.setdefault(what, set()).add(key)
    return keys


def test_members_of_a_group_are_killed_at_every_step(stories):
    """Which of them was faster may differ; what each was sent, said, did and set does not."""
    undisturbed, *disturbed = stories("panel")
    expect_enough_kills(undisturbed, disturbed)
    wanted = undisturbed["end"]["runs"]["run0"]
    assert wanted["outcome"] == ["completed", "all were heard"]
    assert wanted["variables"] == {"checked": "the bill", "picked": "yes", "sure": True}
    assert [message[1] for message in wanted["messages"]].count("Judge") == 1
    for story in disturbed:
        where = story["fatal"]
        found = story["end"]["runs"]["run0"]
        assert story["exits"] == [-signal.SIGKILL] * len(where) + [0], where
        assert {**found, "events": []} == {**wanted, "events": []}, where
        assert by_turn(found) == by_turn(wanted), where
        assert done_by(story).keys() == done_by(undisturbed).keys(), where
        assert all(len(keys) == 1 for keys in done_by(story).values()), where
        expect_repeated_only_if_unrecorded(story, where)
        expect_nothing_ahead_of_the_journal(story, where)


def test_steps_are_called_in_the_documented_order(stories):
    """Otherwise the tests above could pass because nothing is ever killed at the right place."""
    undisturbed, *disturbed = stories("handover")
    steps = undisturbed["end"]["steps"]
    once = [story for story in disturbed if len(story["fatal"]) == 1]
    repeated = {
        steps[story["fatal"][0] - 1]
        for story in once
        if max(Counter(story["effects"]).values()) > 1
    }
    assert "after tool refund" in repeated
    assert "after model Router" in repeated
    assert not any(text.startswith(("after append", "before tool")) for text in repeated)
    for story in once:
        step = steps[story["fatal"][0] - 1]
        if step.startswith("before append RunStarted"):
            assert not written(story["deaths"][0])
        if step.startswith("after append") and step.endswith("RunEnded"):
            assert len(written(story["deaths"][0])) == len(
                undisturbed["end"]["runs"]["run0"]["events"]
            )
