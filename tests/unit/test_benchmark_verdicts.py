"""What the benchmarks make of their measurements: nothing that went wrong may count as kept."""

from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def waiting(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("waiting")


def crowd(p99, failed=0):
    return {"failed": failed, "p50_ms": 210.0, "p99_ms": p99, "wall_s": 1.0, "cpu_s": 1.0}


def test_numbers_of_several_rounds_are_medians_but_failed_runs_are_added_up(waiting):
    lines = [crowd(300.0), crowd(280.0, failed=2), crowd(900.0)]
    assert waiting.middle(lines) == {**crowd(300.0), "failed": 2}


@pytest.mark.parametrize(
    ("floor", "weft", "within"),
    [
        (crowd(200.0), crowd(300.0), True),
        (crowd(200.0), crowd(301.0), False),
        (crowd(200.0), crowd(250.0, failed=1), False),
        (crowd(float("inf"), failed=1000), crowd(250.0), False),
    ],
)
def test_turns_are_held_to_those_of_a_floor_that_did_its_job(waiting, floor, weft, within):
    assert waiting.is_within(floor, weft) is within
