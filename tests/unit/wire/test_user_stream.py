"""Canaries: what is not for end users is nowhere in what they are sent of a whole run."""

import json

import pytest

from support.canary_play import (
    FOR_NOBODY,
    FOR_OPERATORS,
    FOR_USERS,
    MESSAGE,
    MODEL,
    VALUES,
    agree_and_sign,
    ports,
    script,
    spec,
)
from support.run_play import ADA, play
from weft.context.audience import Audience
from weft.engine.events import KIND_NAMES
from weft.wire.events import event_data, user_event_data


@pytest.fixture(scope="module")
def played():
    return play(
        spec(),
        script(),
        message=MESSAGE,
        values=VALUES,
        name=MODEL,
        after=agree_and_sign,
        **ports(),
    )


@pytest.fixture(scope="module")
def user_stream(played):
    audience = Audience(played.workflow.spec, ADA.user)
    return [
        seen
        for event in played.events
        if (seen := user_event_data(event, played.run, played.workflow, audience)) is not None
    ]


@pytest.fixture(scope="module")
def operator_stream(played):
    return [event_data(event, played.run, played.workflow) for event in played.events]


def test_the_run_went_through_everything(played):
    kinds = {KIND_NAMES[type(event.data)] for event in played.events}
    assert kinds >= {
        "ToolFailed", "VariableRefused", "OutputRefused", "RequestOpened", "Forked", "TurnFailed",
        "Joined", "ModelFailed", "HandedOff", "ContextAssembled", "ContextFetched", "MessageSent",
        "SurfaceShown", "ModelConsulted", "ConditionJudged", "DocumentWritten", "RunEnding",
    }  # fmt: skip
    ended = played.events[-1].data
    assert (ended.outcome, "canary-last-error" in ended.reason) == ("failed", True)


def test_nothing_that_is_not_for_users_is_sent_to_them(user_stream):
    text = json.dumps(user_stream)
    found = {
        where: operator
        for where, operator in (FOR_OPERATORS | FOR_NOBODY).items()
        if operator in text
    }
    assert not found
    assert "canary" not in text


def test_operators_get_all_of_it_but_secrets(operator_stream):
    text = json.dumps(operator_stream)
    assert not {
        where: operator for where, operator in FOR_OPERATORS.items() if operator not in text
    }
    assert not {where: value for where, value in FOR_NOBODY.items() if value in text}


def test_neither_digests_nor_rules_reach_users(played, user_stream):
    text = json.dumps(user_stream)
    assert played.workflow.digest not in text
    for event in user_stream:
        assert not {"digest", "rule", "manifest", "values", "reason", "usage"} & set(event["data"])


def test_users_get_what_is_for_them_in_order(user_stream):
    text = json.dumps(user_stream)
    places = [text.find(user) for user in FOR_USERS]
    assert -1 not in places
    assert places == sorted(places)
    (surface,) = (event["data"] for event in user_stream if event["kind"] == "SurfaceShown")
    assert surface == {
        "tool": "board", "component": "Board", "mode": "inline", "payload": {"note": "On show."},
    }  # fmt: skip
    (asked,) = (event["data"] for event in user_stream if event["data"].get("tool") == "sign")
    assert (asked["addressee"], asked["component"]) == ("role:manager", "Sign")
    assert user_stream[-1]["data"] == {"outcome": "failed"}
