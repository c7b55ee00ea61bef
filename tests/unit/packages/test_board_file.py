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


def refused(folder, data):
    finding = only(folder, json.dumps(data))
    return finding.code, finding.message, finding.hint[0] if finding.hint else None


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_is_written_is_read_again_with_the_same_digest(folder, form):
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


PROVIDERS = (
    "correlated, filtered, recent, window, semantic, state, composite, redacting, summary, empty, "
    "custom"
)
INSIDE = {"kind": "redacting", "provider": {"kind": "composite", "providers": [{"kind": "recnt"}]}}
POLICIES = "public, private, labelled, tenant, after"
ZONELESS = "2026-01-31T09:00:00"
TIME = "write it with its zone, such as 2026-01-31T09:00:00Z"


def published(visibility):
    return agent(publishes=[{"type": "News", "visibility": visibility}])


def joined(by):
    return agent(consumes=[{"types": ["News", "News"], "join": {"by": by}}])


def since(value):
    return agent(context={"kind": "filtered", "filters": {"since": value}})


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ({"artifacts": [3]}, "artifacts[0]: expected text or an object, found 3", None),
        (
            {"artifacts": [""]},
            "artifacts[0]: the text is empty",
            "write one, or leave the key out",
        ),
        (
            agent(context={"kind": "filterd"}),
            f'agents[0].context.kind: "filterd" is not one of {PROVIDERS}',
            'did you mean "filtered"?',
        ),
        (
            agent(context="recent"),
            'agents[0].context: expected an object, found "recent"',
            'write {"kind": "recent"}, and what else belongs to it',
        ),
        (agent(context="none"), 'agents[0].context: expected an object, found "none"', None),
        (
            agent(context=INSIDE),
            f'agents[0].context.provider.providers[0].kind: "recnt" is not one of {PROVIDERS}',
            'did you mean "recent"?',
        ),
        (
            agent(context={"kind": "composite", "providers": []}),
            "agents[0].context.providers: expected at least 1 in the list, found 0",
            "add what is missing",
        ),
        (
            published("public"),
            'agents[0].publishes[0].visibility: "public" is no reference to code',
            'write {"kind": "public"}, and what else belongs to it',
        ),
        (
            published("everybody"),
            'agents[0].publishes[0].visibility: "everybody" is no reference to code',
            "write module:name: tools.news:is_local",
        ),
        (
            published({"kind": "after", "seconds": 1, "then": {"kind": "labeled"}}),
            f'agents[0].publishes[0].visibility.then.kind: "labeled" is not one of {POLICIES}',
            'did you mean "labelled"?',
        ),
        (
            published(7),
            "agents[0].publishes[0].visibility: expected text or an object, found 7",
            None,
        ),
        (joined(3), "agents[0].consumes[0].join.by: expected text or an object, found 3", None),
        (
            joined({"News": 3}),
            "agents[0].consumes[0].join.by.News: expected text, found 3",
            'put it in quotes: "3"',
        ),
        (
            agent(engines=[{"kind": "functon"}]),
            'agents[0].engines[0].kind: "functon" is not one of model, function',
            'did you mean "function"?',
        ),
        (
            agent(engines=[{"kind": "function", "function": "check"}]),
            'agents[0].engines[0].function: "check" is no reference to code',
            "write module:name: tools.news:is_local",
        ),
        (
            since("yesterday"),
            'agents[0].context.filters.since: expected a date and a time, found "yesterday"',
            TIME,
        ),
        (since(3), "agents[0].context.filters.since: expected a date and a time, found 3", TIME),
        (
            since(ZONELESS),
            f'agents[0].context.filters.since: expected a time with its zone, found "{ZONELESS}"',
            TIME,
        ),
        (
            agent(schedule={"daily": "25:00"}),
            'agents[0].schedule.daily: "25:00" is no time of day',
            "write hours and minutes: 09:30",
        ),
    ],
)
def test_one_finding_says_what_is_refused(folder, data, message, hint):
    assert refused(folder, data) == ("SCHEMA007", message, hint)


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ({"artifacts": [{"name": "A"}]}, 'artifacts[0]: the key "schema" is missing', "{}"),
        (
            published({"kind": "private"}),
            'agents[0].publishes[0].visibility: the key "agents" is missing',
            "[]",
        ),
    ],
)
def test_what_is_missing_inside_a_union_is_named(folder, data, message, hint):
    code, said, remedy = refused(folder, data)
    assert (code, said) == ("SCHEMA009", message)
    assert remedy.endswith(hint)


def test_an_unknown_key_knows_its_model_however_deep_it_stands(folder):
    data = agent(context={"kind": "redacting", "provider": {"kind": "recent", "lmit": 1}})
    assert refused(folder, data) == (
        "SCHEMA008",
        'agents[0].context.provider: unknown key "lmit"',
        'did you mean "limit"?',
    )


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
