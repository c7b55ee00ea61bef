"""What must not grow: the memory of streams that nobody follows, and the cost of a join."""

from importlib import import_module
from pathlib import Path

import pytest

from support.run_play import ADA
from unit.runtime.test_two_processes import chat
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.runtime.signals import Stop
from weft.testing import FunctionModel, host_for

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


async def test_text_that_is_streamed_to_no_follower_is_not_kept():
    """S7: what is reserved for a follower goes when the run is left."""
    async with host_for(chat(), FunctionModel(lambda _: "What else?")) as host:
        for _ in range(20):
            run = await host.start("W", scope=ADA, message="hi", streamed=True)
            await host.settled(run, scope=ADA)
            await host.deliver(run, Stop(), scope=ADA)
            await host.settled(run, scope=ADA)
        await host.quiet()
        followers = host._followers
        assert (followers._reserved, dict(followers)) == ({}, {})


@pytest.fixture
def joins(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("joins")


def test_artifact_costs_no_more_while_a_join_has_many_open_windows(joins, monkeypatch):
    """S6: the ratio of two costs of this process, so that the machine does not matter."""
    monkeypatch.setattr(joins, "ROUNDS", 2)
    loader = PythonToolLoader()
    workflow = joins.board(loader)
    few, many = joins.cost(workflow, 500), joins.cost(workflow, 8_000)
    loader.close()
    assert many < 3 * few
