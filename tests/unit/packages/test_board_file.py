"""board.json: read and written, and one finding, in our words, for whatever is refused."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from weft.packages.reader import read_package
from weft.packages.writer import file_texts
from weft.spec.workflow import WorkflowSpec, digest, plain

BOARD = {
    "artifacts": ["News", {"name": "Note", "schema": {"type": "object"}}],
    "agents": [
        {
            "agent": "editor",
            "labels": ["staff"],
            "consumes": [{"types": ["News", "Note"], "join": {"by": {"News": "id", "Note": "of"}}}],
            "publishes": [
                {"type": "Note", "visibility": {"kind": "after", "seconds": 5}},
                {"type": "News", "visibility": "tools.news:audience", "validate": "id != ''"},
            ],
            "engines": [{"kind": "model"}, {"kind": "function", "function": "tools.news:check"}],
            "context": {
                "kind": "redacting",
                "provider": {
                    "kind": "composite",
                    "providers": [
                        {
                            "kind": "filtered",
                            "filters": {
                                "types": ["News"],
                                "since": "2026-01-31T09:00:00Z",
                                "until": "2026-02-01T09:00:00.5+02:00",
                            },
                        }
                    ],
                },
                "drop": ["phone"],
            },
            "schedule": {"at": "2026-03-01T00:00:00-05:00"},
        }
    ],
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "W"
    folder.mkdir()
    (folder / "orchestrator.json").write_text('{"workflow_name": "W"}')
    (folder / "agents.json").write_text('{"agents": [{"agent_name": "editor"}]}')
    return folder


def only(folder, text):
    (folder / "board.json").write_text(text)
    (finding,) = read_package(folder).findings
    return finding


def agent(**fields):
    return {"artifacts": ["News"], "agents": [{"agent": "editor", **fields}]}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_written_package_has_the_same_digest(folder, form):
    (folder / "board.json").write_text(json.dumps(BOARD))
    package = read_package(folder)
    assert package.findings == ()
    texts = file_texts(package.spec, formats={"board": form})
    (folder / "board.json").unlink()
    (folder / f"board.{form}").write_text(texts[f"board.{form}"])
    again = read_package(folder)
    assert again.findings == ()
    assert again.spec == package.spec
    assert again.digest == package.digest


def test_times_are_written_as_text_in_their_own_zone():
    board = WorkflowSpec.model_validate(
        {"orchestrator": {"workflow_name": "W"}, "board": BOARD}
    ).board
    written = plain(board)["agents"][0]
    filters = written["context"]["provider"]["providers"][0]["filters"]
    assert filters["since"] == "2026-01-31T09:00:00+00:00"
    assert filters["until"] == "2026-02-01T09:00:00.500000+02:00"
    assert written["schedule"] == {"at": "2026-03-01T00:00:00-05:00"}


def test_two_ways_to_write_a_zone_make_one_workflow():
    def named(at):
        data = agent(schedule={"at": at})
        spec = WorkflowSpec.model_validate({"orchestrator": {"workflow_name": "W"}, "board": data})
        return digest(spec, {})

    assert named("2026-03-01T00:00:00Z") == named(datetime(2026, 3, 1, tzinfo=UTC))
    paris = timezone(timedelta(hours=1))
    assert named("2026-03-01T00:00:00+01:00") == named(datetime(2026, 3, 1, tzinfo=paris))


def test_sets_given_in_code_have_an_order():
    def filtered(types):
        return WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "W"},
                "board": agent(context={"kind": "filtered", "filters": {"types": types}}),
            }
        )

    assert filtered({"b", "a", "c"}) == filtered(("a", "b", "c")) == filtered(["a", "b", "c"])


def test_findings_point_into_the_file(folder):
    text = (
        '{"artifacts": ["News"],\n "agents": [{"agent": "editor",\n  "context": {"kind": "al"}}]}'
    )
    place = only(folder, text).place
    assert (Path(place.file).name, place.line, place.column) == ("board.json", 3, 23)
    package = read_package(folder)
    assert "board" in package.broken


def test_rules_point_into_the_file(folder):
    text = '{"artifacts": ["News"],\n "agents": [{"agent": "editor"}]}'
    (folder / "board.json").write_text(text)
    place = read_package(folder).locate(("board", "agents", 0, "agent"))
    assert (Path(place.file).name, place.line, place.column) == ("board.json", 2, 23)
