"""Forms and schedules begin runs; operators see, pause and fire every start."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from cronsim import CronSim

from support.server_play import PATIENCE, Server, serving
from support.start_play import generate, make_started, runs_of, until_runs
from weft.adapters.sql.postgres.schema import migrate
from weft.errors import UsageError
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.server.starts.forms import start_schema
from weft.server.starts.schedules import due_times, next_time
from weft.spec.orchestrator import ScheduleStart
from weft.testing.clock import ManualClock

DAILY = {"type": "schedule", "cron": "0 2 * * *", "timezone": "Europe/Berlin", "catch_up": "all"}


def at(text: str) -> int:
    """Return milliseconds of a time in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def times(cron: str, after: str, now: str, *, catch_up: str = "all") -> list[str]:
    start = ScheduleStart(cron=cron, timezone="Europe/Berlin", catch_up=catch_up)
    found = due_times(start, at(after), at(now))
    return [datetime.fromtimestamp(each / 1000, UTC).strftime("%m-%d %H:%M") for each in found]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starts")
    generate(folder, "11-nightly-report.form.yaml")
    generate(folder, "14-leave-request.form.yaml")
    make_started(folder, "Claims", {"type": "form_submit", "form": "Claim"})
    make_started(folder, "Daily", DAILY)
    make_started(folder, "Never", {"type": "schedule", "cron": "0 0 1 1 *", "timezone": "UTC"})
    make_started(folder, "Mars", {"type": "schedule", "cron": "* * * * *", "timezone": "Mars/Base"})
    return folder


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock(at("2027-03-27T12:00"))


@pytest.fixture(scope="module")
def server(workspace: Path, clock: ManualClock) -> Iterator[Server]:
    with serving(workspace, clock=clock) as server:
        yield server


def operator(server: Server, app: str = "local") -> str:
    return server.key("op", "operator", app=app)


def start_of(server: Server, name: str, app: str = "local") -> dict:
    found = server.get("/api/starts", key=operator(server, app))["items"]
    return next(each for each in found if each["id"] == name)


# -- times


def test_times_of_berlin_when_clocks_change():
    assert times("30 2 * * *", "2027-03-27T12:00", "2027-03-28T12:00") == ["03-28 01:00"]
    assert times("30 2 * * *", "2027-10-30T12:00", "2027-10-31T12:00") == ["10-31 00:30"]
    assert len(times("*/30 * * * *", "2027-03-27T23:00", "2027-03-28T22:00")) == 46
    assert len(times("*/30 * * * *", "2027-10-30T22:00", "2027-10-31T23:00")) == 50


def test_missed_times_are_made_up_for_as_declared():
    missed = {"after": "2027-01-01T00:00", "now": "2027-01-03T12:00"}
    daily = times("0 9 * * *", **missed)
    assert daily == ["01-01 08:00", "01-02 08:00", "01-03 08:00"]
    assert times("0 9 * * *", **missed, catch_up="last") == ["01-03 08:00"]
    assert times("0 9 * * *", **missed, catch_up="none") == []
    assert times("0 13 * * *", **missed, catch_up="none") == ["01-03 12:00"]
    every_minute = times("* * * * *", **missed)
    assert (len(every_minute), every_minute[-1]) == (100, "01-03 12:00")


def test_times_looked_up_backwards_are_those_of_the_schedule():
    random = Random(7)
    zone = "Europe/Berlin"
    for _ in range(60):
        cron = f"{random.choice(['*/20', '30', '0,59'])} {random.choice(['*', '1-3', '*/5'])} * * *"
        start = ScheduleStart(cron=cron, timezone=zone, catch_up="all")
        begin = at(random.choice(["2027-03-27T22:00", "2027-10-30T22:00"]))
        begin += random.randrange(8 * 3600) * 1000
        end = begin + random.randrange(8 * 3600) * 1000
        expected, now = [], begin
        while (following := next_time(start, now)) is not None and following <= end:
            expected.append(following)
            now = following
        assert due_times(start, begin, end) == expected, (cron, begin, end)


def test_invalid_schedules_are_refused():
    with pytest.raises(UsageError, match="no time zone Mars/Base"):
        next_time(ScheduleStart(cron="* * * * *", timezone="Mars/Base"), 0)
    with pytest.raises(UsageError, match="schedule x is not valid"):
        next_time(ScheduleStart(cron="x"), 0)
    assert next(CronSim("0 0 1 1 *", datetime(2027, 1, 1, tzinfo=UTC))).year == 2028


# -- schedules


def advance(server: Server, clock: ManualClock, hours: float) -> None:
    """Let time pass once the schedules are known."""

    async def pass_time() -> None:
        async with asyncio.timeout(PATIENCE):
            while not clock.sleepers:  # noqa: ASYNC110 - the clock has no event
                await asyncio.sleep(0.02)
            await clock.advance(hours * 3600)

    server.run(pass_time())


def test_schedule_begins_one_run_for_each_time(server: Server, clock: ManualClock):
    key = operator(server)
    server.until("/api/starts", key, is_so=lambda page: _is_known(server, "Daily"))
    assert start_of(server, "Daily")["next_at"] == at("2027-03-28T01:00")
    assert start_of(server, "Daily")["last"] is None
    advance(server, clock, 14)
    (run,) = until_runs(server, "Daily", 1)
    assert run["user"] == "schedule:Daily"
    last = server.until("/api/starts/Daily/firings", key, is_so=lambda page: page["items"])
    assert last["items"] == [
        {"at": at("2027-03-28T01:00"), "by": "schedule", "run": run["run"], "error": "",
         "due": at("2027-03-28T01:00")}
    ]  # fmt: skip
    advance(server, clock, 3 * 24)
    until_runs(server, "Daily", 4)
    path = "/api/starts/Daily/firings?limit=3"
    page = server.until(path, key, is_so=lambda page: page["next"])
    rest = server.get(f"/api/starts/Daily/firings?limit=3&cursor={page['next']}", key=key)
    found = [each["due"] for each in page["items"] + rest["items"]]
    assert found == sorted(found, reverse=True)
    assert (len(found), rest["next"]) == (4, None)


def _is_known(server: Server, name: str) -> bool:
    state = server.run(server.opened.context.records.record("local", "start", name))
    return state is not None


def test_generated_nightly_report_begins_at_two(server: Server, clock: ManualClock):
    before = len(runs_of(server, "NightlyReport"))
    shown = start_of(server, "NightlyReport")
    assert shown["trigger"]["cron"] == "0 2 * * *"
    seconds = (shown["next_at"] - clock.now()) / 1000
    advance(server, clock, (seconds + 1) / 3600)
    runs = until_runs(server, "NightlyReport", before + 1)
    settled = server.settled(runs[-1]["run"], operator(server))
    # Both agents work; the service that gets the report is not there.
    assert (settled["status"], settled["turns"]) == ("ended", 2), settled
    assert "slack_message could not be read" in settled["reason"]


def test_paused_schedule_begins_nothing_and_makes_nothing_up(server: Server, clock: ManualClock):
    key, before = operator(server), len(runs_of(server, "Daily"))
    paused = server.post("/api/starts/Daily/pause", key=key)
    assert (paused["paused"], paused["next_at"]) == (True, None)
    advance(server, clock, 48)
    resumed = server.post("/api/starts/Daily/resume", key=key)
    assert resumed["next_at"] > clock.now()
    assert len(runs_of(server, "Daily")) == before
    advance(server, clock, 24)
    until_runs(server, "Daily", before + 1)


def test_failing_start_is_named_and_the_others_continue(server: Server, clock: ManualClock):
    shown = start_of(server, "Mars")
    assert shown["error"] == "there is no time zone Mars/Base"
    assert start_of(server, "Daily")["error"] == ""


def test_package_that_is_changed_while_the_server_runs(
    server: Server, clock: ManualClock, workspace: Path
):
    folder = make_started(workspace, "Late", {**DAILY, "cron": "15 * * * *"})
    key = operator(server)
    server.until("/api/starts", key, is_so=lambda _: _is_known(server, "Late"))
    advance(server, clock, 1)
    until_runs(server, "Late", 1)
    text = (folder / "orchestrator.json").read_text("utf-8")
    (folder / "orchestrator.json").write_text(text[: len(text) // 2], "utf-8")
    server.until("/api/starts", key, is_so=lambda _: start_of(server, "Late")["error"])
    assert "orchestrator.json" in start_of(server, "Late")["error"]
    advance(server, clock, 1)
    until_runs(server, "Late", 2)  # The last good version remains in use.


def test_starts_of_a_tenant_are_its_own(server: Server, workspace: Path):
    server.post("/api/apps", {"app": "shop"}, key=server.key("root", "administrator"))
    path = workspace / "apps" / "shop"
    make_started(path, "Daily", {**DAILY, "cron": "0 5 * * *"})
    server.until("/api/starts", operator(server, "shop"), is_so=_has("Daily", "0 5 * * *"))
    assert start_of(server, "Daily")["trigger"]["cron"] == "0 2 * * *"
    assert server.get("/api/starts", key=operator(server, "other"))["items"] == []


def _has(name: str, cron: str):
    def is_so(page: dict) -> bool:
        return any(
            each["id"] == name and each["trigger"]["cron"] == cron
            for each in page["items"]
            if each["type"] == "schedule"
        )

    return is_so


def test_three_servers_begin_one_run_for_each_time(tmp_path: Path, postgres_database: str):
    asyncio.run(migrate(postgres_database))
    make_started(tmp_path, "Hourly", {**DAILY, "cron": "0 * * * *"})
    clocks = [ManualClock(at("2027-06-01T00:30")) for _ in range(3)]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(tmp_path, {"WEFT_STORE": postgres_database}, clock=clock))
            for clock in clocks
        ]
        first = servers[0]
        first.until("/api/starts", operator(first), is_so=lambda _: _is_known(first, "Hourly"))
        for hour in range(1, 6):
            for server, clock in zip(servers, clocks, strict=True):
                asyncio.run_coroutine_threadsafe(clock.advance(3600), server.loop)
            until_runs(first, "Hourly", hour)
        path = "/api/starts/Hourly/firings"
        page = first.until(path, operator(first), is_so=lambda page: len(page["items"]) >= 5)
        firings = page["items"]
        assert len({each["due"] for each in firings}) == len(firings) == 5


# -- what operators do


def test_operator_fires_a_start(server: Server):
    key = operator(server)
    before = len(runs_of(server, "Never"))
    run = server.post("/api/starts/Never/fire", {}, key=key, status=201)["run"]
    assert [each["run"] for each in runs_of(server, "Never")][before:] == [run]
    assert start_of(server, "Never")["last"]["by"] == "manual"
    refused = server.call("POST", "/api/starts/Claims/fire", {"input": {"amount": "x"}}, key=key)
    assert refused.status == 422
    assert "does not fit" in start_of(server, "Claims")["last"]["error"]


def test_start_that_is_fired_again_with_its_key_begins_one_run(server: Server, clock: ManualClock):
    key, hour = operator(server), 3_600_000
    until_the_hour = hour - clock.now() % hour
    advance(server, clock, (until_the_hour - 10_000) / hour)

    def fire() -> tuple[int, str]:
        headers = {"Idempotency-Key": "once"}
        reply = server.call("POST", "/api/starts/Never/fire", key=key, headers=headers)
        return reply.status, reply.data["run"]

    status, run = fire()
    assert (status, fire()) == (201, (200, run))
    advance(server, clock, 20 / 3600)
    assert fire() == (200, run), "the next hour has begun"


def test_starts_are_for_operators(server: Server):
    ada = server.key("ada", "developer")
    for method, path in (
        ("GET", "/api/starts"),
        ("POST", "/api/starts/Daily/pause"),
        ("POST", "/api/starts/Daily/fire"),
        ("GET", "/api/starts/Daily/firings"),
    ):
        assert server.call(method, path, key=ada).status == 404
    missing = server.call("POST", "/api/starts/Dayly/pause", key=operator(server))
    assert (missing.status, missing.data["hint"]) == (404, ["did you mean Daily?"])


# -- forms


def test_form_begins_a_run_with_its_values(server: Server):
    ada = server.key("ada", "end_user")
    given = {"amount": 12, "why": "taxi"}
    run = server.post("/api/starts/Claims/form", given, key=ada, status=201)["run"]
    again = server.post("/api/starts/Claims/form", given, key=ada, status=200)
    assert again["run"] == run
    settled = server.settled(run, ada)
    assert (settled["user"], settled["outcome"]) == ("ada", "completed")
    state = server.get(f"/api/runs/{run}/events", key=server.key("dev", "developer"))
    assert state["items"][0]["data"]["input"] == given


def test_schema_of_a_form_is_shown_to_everyone(server: Server):
    ada = server.key("ada", "end_user")
    start = server.get("/api/workflows/Claims", key=ada)["start"]
    assert start["type"] == "object"
    assert start["required"] == ["amount", "why"]
    assert list(start["properties"]) == ["amount", "why", "note"]
    assert server.get("/api/workflows/Daily", key=ada)["start"] is None


def test_schema_of_a_flow_has_the_defaults_of_its_state():
    schema = start_schema(read_package(shipped_folder() / "OrderProcessing").spec)
    assert schema["required"] == []
    assert schema["properties"]["payment"] == {
        "enum": ["card", "invoice"],
        "description": "How it is paid.",
        "default": "card",
    }


def test_every_field_of_a_form_that_does_not_fit_is_named(server: Server):
    ada = server.key("ada", "end_user")
    reply = server.call("POST", "/api/starts/Claims/form", {"amount": "x", "wy": 1}, key=ada)
    assert (reply.status, reply.data["code"]) == (422, "HTTP422")
    assert reply.data["message"] == "the values do not fit the form Claim"
    assert reply.data["cause"] == [
        'amount: expected int, got "x"',
        "why: this field is missing",
        "wy: the form has no such field",
    ]
    other = server.call("POST", "/api/starts/Daily/form", {}, key=ada)
    assert (other.status, other.data["message"]) == (404, "Daily is not started by a form")


def test_generated_leave_request_begins_with_its_form(server: Server):
    ada = server.key("ada", "end_user")
    given = {"from_day": "2026-12-21", "to_day": "2026-12-23", "remark": ""}
    run = server.post("/api/starts/LeaveRequest/form", given, key=ada, status=201)["run"]
    settled = server.settled(run, ada)
    assert settled["status"] in ("waiting", "ended"), json.dumps(settled)
    assert settled["outcome"] in (None, "completed"), settled
