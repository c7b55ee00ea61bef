"""Journals that were written once fold for ever, and to what they folded to then."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from replay.folding import expectation, only, read
from support.run_play import linked
from support.snapshots import expect_snapshots
from weft.engine.compile import compile_workflow
from weft.engine.events import KINDS, Joined, RunStarted, TurnEnded, VariableSet
from weft.engine.events.codec import encode
from weft.engine.reduce import reduce
from weft.engine.state import State
from weft.inspect.replay import check_replay
from weft.runtime.workflow import unpack
from weft.spec.workflow import digest

FOLDERS = sorted(
    file for file in Path(__file__).parent.iterdir() if (file / "journal.jsonl").exists()
)


@pytest.fixture(params=FOLDERS, ids=lambda part: part.name)
def folder(request):
    return request.param


def test_there_are_journals_of_every_kind_of_event():
    kinds = {
        from_json(line)["kind"]
        for folder in FOLDERS
        for line in (folder / "journal.jsonl").read_bytes().splitlines()
    }
    assert kinds == set(KINDS)
    assert len(FOLDERS) >= 5


def test_a_journal_folds_to_what_it_folded_to(folder):
    spec, _ = unpack((folder / "package.json").read_bytes())
    expected = from_json((folder / "expected.json").read_bytes())
    events = read((folder / "journal.jsonl").read_bytes())
    found = expectation(compile_workflow(spec), expected["run"], events)
    assert only({"run": expected["run"], **found}, expected) == expected


def test_everything_is_decided_again_as_it_was(folder):
    """What agents are sent may change with versions of Weft; what follows from events may not."""
    spec, code = unpack((folder / "package.json").read_bytes())
    run = from_json((folder / "expected.json").read_bytes())["run"]
    events = read((folder / "journal.jsonl").read_bytes())
    found = check_replay(linked(spec, code), run, events)
    assert [item for item in found if not item.what.endswith("would be sent something else")] == []


def test_events_are_read_and_written_without_loss(folder):
    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    for line, event in zip(lines, read(b"\n".join(lines)), strict=True):
        recorded = from_json(line)["data"]
        kept = only(from_json(encode(event.data)), recorded)
        # The same bytes, but for fields that have been added since.
        assert line.endswith(b',"data":' + to_json(kept) + b"}")


def test_a_package_is_still_what_it_was(folder):
    spec, code = unpack((folder / "package.json").read_bytes())
    expected = from_json((folder / "expected.json").read_bytes())
    assert spec.orchestrator.workflow_name == expected["state"]["workflow"]
    assert digest(spec, code) == expected["state"]["digest"]


def test_only_events_that_say_so_set_variables(folder):
    """Else a trigger that is judged otherwise by a later engine would change what is past."""
    spec, _ = unpack((folder / "package.json").read_bytes())
    expected = from_json((folder / "expected.json").read_bytes())
    compiled, state = compile_workflow(spec), State(expected["run"])
    said: dict[int, dict[str, Any]] = {}
    for event in read((folder / "journal.jsonl").read_bytes()):
        before, data = state.variables, event.data
        state, _ = reduce(compiled, state, event)
        if isinstance(data, VariableSet):
            said.setdefault(event.turn, {})[data.name] = data.value
        elif spec.flow and isinstance(data, TurnEnded | Joined):
            # What a step sets counts when it has ended; in a path, when that has joined.
            names = {name for values in said.values() for name in values}
            assert {name for name in before if state.variables[name] != before[name]} <= names
        elif isinstance(data, Joined):
            joined = {
                name: value for turn in data.turns for name, value in said.get(turn, {}).items()
            }
            assert state.variables == {**before, **joined}, event
        elif not isinstance(data, RunStarted):
            assert state.variables == before, event


def test_snapshots_and_the_rest_of_a_journal_give_the_same_state(folder):
    spec, _ = unpack((folder / "package.json").read_bytes())
    expected = from_json((folder / "expected.json").read_bytes())
    events = read((folder / "journal.jsonl").read_bytes())
    expect_snapshots(compile_workflow(spec), expected["run"], events)
