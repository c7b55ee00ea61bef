"""VAR023 and VAR024: how a run starts, and what limits it."""

import pytest

from unit.check.builders_code import subject
from weft.check.rules.start import budget_limits_something, run_can_start


def starts(trigger, **more):
    return list(run_can_start.check(subject(orchestrator={"trigger": trigger, **more})))


def cron(text, **more):
    return starts({"type": "schedule", "cron": text, **more})


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *", "0 9 * * MON-FRI", "*/5 0-23/2 1,15,31 jan-DEC 7", "59 23 31 12 0",
        "0  9 1-7 * sun", "5/15 * * * *",
    ],
)  # fmt: skip
def test_schedule(text):
    assert cron(text) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("every day at nine", "4 fields"),
        ("0 0 9 * * *", "6 fields"),
        ("60 * * * *", '"60" is no minute'),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day"),
        ("* * * 13 *", "month"),
        ("* * * MON *", "month"),
        ("* * * * 8", "weekday"),
        ("5-1 * * * *", "minute"),
        ("1, * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("*/61 * * * *", "minute"),
        ("1-2-3 * * * *", "minute"),
        ("@daily * * * *", "minute"),
        ("*-3 * * * *", "minute"),
        ("1-x * * * *", "minute"),
    ],
)
def test_schedule_that_cannot_be_read(text, part):
    (hit,) = cron(text)
    assert hit.path == ("orchestrator", "trigger", "cron")
    assert part in hit.message


@pytest.mark.parametrize(
    ("zone", "usable"),
    [
        ("UTC", True),
        ("Europe/Berlin", True),
        ("America/Argentina/Buenos_Aires", True),
        ("America/Port-au-Prince", True),
        ("Etc/GMT+5", True),
        ("Berlin", False),
        ("europe/berlin", False),
        ("UTC+1", False),
        ("Europe/", False),
    ],
)
def test_time_zone(zone, usable):
    found = [hit.path for hit in cron("0 9 * * *", timezone=zone)]
    assert found == ([] if usable else [("orchestrator", "trigger", "timezone")])


def database(condition):
    return starts({"type": "database_condition", "collection": "Orders", "condition": condition})


def test_condition_of_a_database_start():
    assert database("status == 'paid'") == []
    (hit,) = database("status == ")
    assert hit.path == ("orchestrator", "trigger", "condition")
    assert "cannot be read" in hit.message
    assert hit.hint
    assert hit.offset is not None


@pytest.mark.parametrize(
    ("trigger", "mode", "usable"),
    [
        ({"type": "webhook"}, "UserDriven", False),
        ({"type": "webhook"}, "AgentDriven", False),
        ({"type": "schedule", "cron": "0 9 * * *"}, "AgentDriven", False),
        ({"type": "webhook"}, "BackendOnly", True),
        ({"type": "webhook"}, None, True),
        ({"type": "form_submit"}, "AgentDriven", True),
        ({"type": "chat"}, "UserDriven", True),
    ],
)
def test_startup_mode_fits_the_start(trigger, mode, usable):
    found = [hit.path for hit in starts(trigger, startup_mode=mode)]
    assert found == ([] if usable else [("orchestrator", "startup_mode")])


def budgets(*found):
    return list(budget_limits_something.check(subject(orchestrator={"budgets": list(found)})))


def test_budget_that_limits_nothing():
    (hit,) = budgets({"tokens": 5}, {"level": "user", "warn_share": 0.5})
    assert hit.path == ("orchestrator", "budgets", 1)
    assert "limits nothing" in hit.message


def test_two_budgets_for_one_level():
    (hit,) = budgets({"tokens": 5}, {"level": "user", "steps": 5}, {"cost_usd": 5})
    assert hit.path == ("orchestrator", "budgets", 2)
    assert "two budgets for the level run" in hit.message


def test_budgets_that_limit():
    assert budgets({"wall_seconds": 5}, {"level": "user", "tool_calls": 5}) == []


@pytest.mark.parametrize(("path", "usable"), [("orders/new", True), (None, True), ("a b", False)])
def test_path_of_a_webhook(path, usable):
    found = [hit.path for hit in starts({"type": "webhook", "path": path})]
    assert found == ([] if usable else [("orchestrator", "trigger", "path")])
