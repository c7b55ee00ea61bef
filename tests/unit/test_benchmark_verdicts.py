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


def test_costs_that_turns_writes_are_those_that_scaling_uses(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    turns, scaling = import_module("turns"), import_module("scaling")
    file = tmp_path / "turns.json"
    measured = turns.Measurement(cpu_ms_per_call=0.47, wall_s=1.0, rss_mb=90.0, calls=4)
    file.write_text(turns.as_json({50: {"weft_postgres": measured}, 1: {}}))
    monkeypatch.setattr("sys.argv", ["scaling.py", "--costs", str(file), "--conversations", "100"])
    scaling.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "gateway    1.80 ms (default)",
        f"worker     0.47 ms ({file}: weft_postgres, 50 at once)",
        "database   0.20 ms (default)",
    ]
    file.write_text(turns.as_json({50: {}}))
    with pytest.raises(SystemExit, match="has no costs of weft_postgres with 50 at once"):
        scaling.main()
