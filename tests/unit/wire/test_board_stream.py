"""Canaries on a board: nothing of artifacts, and of how they are handled, reaches end users."""

import json
from datetime import UTC, datetime

import pytest

from support.board_play import ARTIFACTS, PEOPLE, function, news, play_board
from weft.context.audience import Audience
from weft.context.slices import Envelope
from weft.engine.events import KIND_NAMES, ArtifactPublished
from weft.testing.store.kinds import EVERY_KIND
from weft.wire.events import USER_FIELDS, event_data, user_event_data
from weft.wire.rows import artifact_data

BOARD_KINDS = {
    "ArtifactPublished", "ArtifactArrived", "DeliveryMissed", "DeliveryDeferred", "BatchesFlushed",
}  # fmt: skip

SCOUT = {
    "agent": "Scout",
    "consumes": [{"types": ["Note"]}],
    "publishes": [
        {
            "type": "Lead",
            "tags": ["canary-tag"],
            "visibility": {"kind": "labelled", "labels": ["canary-label"]},
        }
    ],
    "components": [{"component": "tools.work:Gate", "hooks": ["artifact_published"]}],
}
EDITOR = {
    "agent": "Editor",
    "consumes": [{"types": ["Note"]}],
    "context": {"kind": "custom", "provider": "tools.work:broken"},
    "fallback": {"kind": "recent"},
    "engines": [function("judge")],
}
#: Publishes nothing: what its model says is still no word to users.
CLERK = {"agent": "Clerk", "consumes": [{"types": ["Note"]}]}

CANARIES = [
    "canary-payload", "canary-tag", "canary-label", "canary-id", "canary-partition", "It rains.",
    "no index", "no opinion", "RecentProvider", "Scout.0",
]  # fmt: skip


@pytest.fixture(scope="module")
def played():
    spec = news(
        agents=[
            person for person in PEOPLE if person["agent_name"] in ("Scout", "Editor", "Clerk")
        ],
        board={"artifacts": ARTIFACTS, "agents": [SCOUT, EDITOR, CLERK]},
    )
    return play_board(
        ("Note", {"text": "canary-payload"}),
        spec=spec,
        tags=["canary-tag"],
        id="canary-id",
        partition="canary-partition",
    )


def seen_by_users(played, user="ada"):
    audience = Audience(played.workflow.spec, user)
    shown = (
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    )
    return [item for item in shown if item is not None]


def test_operators_read_all_of_it(played):
    told = json.dumps([event_data(event, played.run, played.workflow) for event in played.events])
    assert [canary for canary in CANARIES if canary not in told] == []


def test_users_read_nothing_of_it(played):
    told = json.dumps(seen_by_users(played))
    assert [canary for canary in CANARIES if canary in told] == []


def test_users_see_who_works(played):
    kinds = {user["kind"] for user in seen_by_users(played)}
    assert kinds == {"RunStarted", "TurnStarted", "TurnEnded"}
    started = next(user for user in seen_by_users(played) if user["kind"] == "TurnStarted")
    assert started["data"].keys() == {"agent"}


def test_no_kind_of_the_board_is_for_users():
    assert set(KIND_NAMES.values()) >= BOARD_KINDS
    assert BOARD_KINDS.isdisjoint(USER_FIELDS)


def test_words_are_not_streamed_to_users(played):
    audience = Audience(played.workflow.spec, "ada")
    assert audience.sees_agent("Clerk")
    assert not audience.hears("Clerk", "It rains.")
    assert not audience.sees_while_streaming("Clerk")


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda item: type(item).__name__)
def test_every_kind_is_json_on_a_board_as_well(played, data):
    event = played.events[0]._replace(data=data)
    told = event_data(event, "r", played.workflow)
    assert json.loads(json.dumps(told)) == told


def test_a_published_artifact_as_json(played):
    event = played.at(ArtifactPublished)
    told = event_data(event, played.run, played.workflow)
    assert (told["kind"], told["actor"], told["turn"]) == ("ArtifactPublished", "user:ada", 0)
    assert told["data"]["payload"] == {"text": "canary-payload"}
    assert told["data"]["wakes"].keys() == {"Scout.0", "Editor.0", "Clerk.0"}


def test_times_of_artifacts_are_milliseconds():
    at = datetime(2026, 1, 2, tzinfo=UTC)
    told = artifact_data(Envelope("a", "Note", {}, "Scout", "c", None, ("x",), at))
    assert told["created_at"] == 1767312000000
    assert (told["tags"], told["partition_key"], told["version"]) == (["x"], None, 1)
