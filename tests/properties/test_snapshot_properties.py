"""A snapshot and the rest of a journal give the same state as the whole journal."""

import pytest
from hypothesis import given, settings

from properties.test_board_properties import boards, stories, take, world_of
from properties.test_engine_properties import journals
from properties.test_flow_properties import Chance
from support.effort import TIMES
from support.snapshots import expect_snapshots


@settings(max_examples=60 * TIMES, deadline=None)
@given(journals())
def test_snapshots_of_chats(play):
    expect_snapshots(play.compiled, "r", play.events)


@settings(max_examples=40 * TIMES, deadline=None)
@given(boards, stories)
def test_snapshots_of_boards(board, story):
    world = world_of(board)
    for step in story:
        take(world, step)
    expect_snapshots(world.workflow.compiled, "c1", world.events)


@pytest.mark.parametrize("seed", range(30 * TIMES))
def test_snapshots_of_flows(seed):
    run = Chance(seed)
    expect_snapshots(run.workflow.compiled, "run", run.events)
