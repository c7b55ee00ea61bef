"""Each kind of start runs a shipped example, from the real component to the end of the run."""

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from support.server_play import PATIENCE, Server, serving
from support.start_play import make_started, send_hook, until_runs
from weft.adapters.sql.postgres.schema import migrate
from weft.app.documents import documents_of
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.packages.workspace import find_packages
from weft.ports.documents import Collection
from weft.ports.scope import Scope
from weft.testing.clock import ManualClock

EXAMPLES = Path(__file__).parents[2] / "examples" / "starts"
SECRET = "of the shop"

#: Ten past midnight in Berlin.
MIDNIGHT = round(datetime(2027, 5, 3, 22, 10, tzinfo=UTC).timestamp() * 1000)


def copy_examples(folder: Path) -> Path:
    return shutil.copytree(EXAMPLES, folder / "starts")


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock(MIDNIGHT)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[Server]:
    folder = copy_examples(tmp_path_factory.mktemp("examples"))
    with serving(folder, {"SHOP_SECRET": SECRET}, clock=clock) as server:
        yield server


def first_event(server: Server, run: str) -> Mapping[str, Any]:
    page = server.get(f"/api/runs/{run}/events", key=server.key("dev", "developer"))
    return page["items"][0]["data"]


def ended(server: Server, run: str) -> Mapping[str, Any]:
    row = server.settled(run, server.key("op", "operator"))
    assert (row["status"], row["outcome"]) == ("ended", "completed"), row
    return row


def known(server: Server, name: str, field: str) -> None:
    """Wait until a start has been looked at for the first time."""
    records = server.opened.context.records

    def is_known(_: object) -> bool:
        record = server.run(records.record("local", "start", name))
        return record is not None and field in record.value

    server.until("/api/starts", server.key("op", "operator"), is_so=is_known)


def test_examples_have_no_findings_and_show_every_kind_of_start():
    packages = [read_package(folder) for folder in find_packages(EXAMPLES)]
    assert {package.spec.orchestrator.trigger.type for package in packages} == {
        "chat",
        "form_submit",
        "webhook",
        "schedule",
        "database_condition",
    }
    assert [finding for package in packages for finding in review_package(package)] == []


def test_chat_begins_with_a_person(server: Server):
    ada = server.key("ada", "end_user")
    given = {"workflow": "SupportChat", "message": "Where is my parcel?"}
    run = server.post("/api/runs", given, key=ada, status=201)["run"]
    row = server.settled(run, ada)
    assert (row["status"], row["user"]) == ("waiting", "ada")
    server.post(f"/api/runs/{run}/messages", {"text": "Thank you"}, key=ada)
    server.until(f"/api/runs/{run}/events", ada, is_so=_has_two_turns)


def _has_two_turns(page: Mapping[str, Any]) -> bool:
    return [event["kind"] for event in page["items"]].count("TurnEnded") == 2


def test_form_begins_a_run_of_its_person(server: Server):
    ada = server.key("ada", "end_user")
    given = {"employee": "Ada", "days": 3}
    run = server.post("/api/starts/LeaveRequest/form", given, key=ada, status=201)["run"]
    assert ended(server, run)["user"] == "ada"
    assert first_event(server, run)["values"] == {"employee": "Ada", "days": 3}
    wrong = server.call("POST", "/api/starts/LeaveRequest/form", {"days": "x"}, key=ada)
    assert (wrong.status, len(wrong.data["cause"])) == (422, 2)


def test_webhook_begins_a_run_and_the_router_of_the_package_shows_it(
    server: Server, clock: ManualClock
):
    hook = "/hooks/local/shop/orders"
    now = clock.now() / 1000
    reply = send_hook(server, hook, {"order": 17}, secret=SECRET, delivery="d-1", at=now)
    assert reply.status == 202, reply.content
    run = reply.data["run"]
    assert ended(server, run)["user"] == "webhook:OrderIntake"
    assert first_event(server, run)["values"] == {"order": 17}
    operator = server.key("op", "operator")
    shown = _raw(server, f"/x/OrderIntake/orders/{run}", operator)
    assert shown == {"order": run, "status": "ended"}
    states = {
        each["entrypoint"]: each["state"]
        for each in server.get("/api/extensions", key=operator)["items"]
    }
    assert states == {"tools.api:get_router": "running", "tools.outbox:Outbox": "running"}


def _raw(server: Server, path: str, key: str) -> Any:
    from urllib.request import Request, urlopen

    request = Request(server.url + path, headers={"Authorization": f"Bearer {key}"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def test_schedule_begins_at_two_in_the_night(server: Server, clock: ManualClock):
    known(server, "NightlyReport", "declared")
    items = server.get("/api/starts", key=server.key("op", "operator"))["items"]
    (shown,) = [each for each in items if each["id"] == "NightlyReport"]
    assert shown["trigger"]["cron"] == "0 2 * * *"
    assert shown["trigger"]["timezone"] == "Europe/Berlin"
    assert shown["next_at"] == MIDNIGHT + 110 * 60_000

    async def pass_hours(hours: float) -> None:
        while not clock.sleepers:  # noqa: ASYNC110 - the clock has no event
            await asyncio.sleep(0.02)
        await clock.advance(hours * 3600)

    server.run(pass_hours(2))
    (run,) = until_runs(server, "NightlyReport", 1)
    assert ended(server, run["run"])["user"] == "schedule:NightlyReport"
    path, key = "/api/starts/NightlyReport/firings", server.key("op", "operator")
    firings = server.until(path, key, is_so=lambda page: page["items"])
    assert [each["due"] for each in firings["items"]] == [MIDNIGHT + 110 * 60_000]


def test_schedule_fires_once_across_two_processes(tmp_path: Path):
    folder = copy_examples(tmp_path)
    program = Path(__file__).parents[1] / "support" / "schedule_process.py"
    command = [sys.executable, str(program), str(folder), str(MIDNIGHT)]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        for server in servers:
            stack.callback(server.kill)
            assert _line(server).startswith("http")
        clock = ManualClock(MIDNIGHT)
        reader = stack.enter_context(serving(folder, clock=clock, works=False))
        known(reader, "NightlyReport", "declared")
        for day in range(1, 4):
            for server in servers:
                assert server.stdin
                server.stdin.write(f"{24 * 3600}\n")
                server.stdin.flush()
            for server in servers:
                assert _line(server) == "passed"
            runs = until_runs(reader, "NightlyReport", day)
        path = "/api/starts/NightlyReport/firings"
        firings = reader.until(
            path, reader.key("op", "operator"), is_so=lambda page: len(page["items"]) >= len(runs)
        )
        assert len({each["due"] for each in firings["items"]}) == len(firings["items"]) == 3


def _line(server: subprocess.Popen[str]) -> str:
    """Return the next line of a process; ends one that says nothing."""
    assert server.stdout
    too_late = threading.Timer(3 * PATIENCE, server.kill)
    too_late.start()
    try:
        return server.stdout.readline().strip()
    finally:
        too_late.cancel()


# -- documents


def put_here(server: Server, values: Mapping[str, Any], database: str | None = None) -> None:
    """Write a document through the server's own documents."""
    documents = server.opened.context.host.documents
    assert documents is not None
    query = {"product": values["product"]}
    collection = Collection("Products", database)
    server.run(documents.put(Scope.operator("local"), collection, query, values))


async def put_by_another_program(folder: Path, environment: Mapping[str, str]) -> None:
    documents = documents_of(folder, environment)
    scope, values = Scope.operator("local"), {"product": "Screw", "stock": 1}
    await documents.put(scope, Collection("Products"), {"product": "Screw"}, values)
    await documents.close()


def stock_falls(server: Server, put: Callable[[Mapping[str, Any]], None]) -> None:
    """Let the stock of products fall and rise, and check which runs begin."""
    known(server, "StockAlert", "declared")
    put({"product": "Bolt", "stock": 9})
    put({"product": "Nut", "stock": 2})
    (nut,) = until_runs(server, "StockAlert", 1)
    assert ended(server, nut["run"])["user"] == "database_condition:StockAlert"
    assert first_event(server, nut["run"])["values"] == {"product": "Nut", "stock": 2}
    put({"product": "Nut", "stock": 1})  # It matches still.
    put({"product": "Bolt", "stock": 4})
    _, bolt = until_runs(server, "StockAlert", 2)
    assert first_event(server, bolt["run"])["values"] == {"product": "Bolt", "stock": 4}


def test_document_begins_a_run_when_it_starts_to_match(server: Server):
    stock_falls(server, lambda values: put_here(server, values))
    put_here(server, {"product": "Nut", "stock": 20})
    put_here(server, {"product": "Nut", "stock": 3})
    until_runs(server, "StockAlert", 3)


def test_database_of_a_start_is_the_one_that_is_watched(tmp_path: Path):
    trigger = {
        "type": "database_condition",
        "database": "warehouse",
        "collection": "Products",
        "condition": "stock < 5",
    }
    make_started(tmp_path, "Elsewhere", trigger)
    with serving(tmp_path) as server:
        known(server, "Elsewhere", "declared")
        put_here(server, {"product": "Nail", "stock": 1})
        put_here(server, {"product": "Bolt", "stock": 1}, "warehouse")
        (run,) = until_runs(server, "Elsewhere", 1)
        assert first_event(server, run["run"])["input"]["product"] == "Bolt"


def test_document_of_mongodb_that_another_program_writes_begins_a_run(
    tmp_path: Path, mongodb_database: str
):
    environment = {"WEFT_DOCUMENTS": mongodb_database}
    with (
        serving(copy_examples(tmp_path), environment) as server,
        MongoClient(mongodb_database) as client,
    ):
        products = client.get_default_database()["Products"]

        def put(values: Mapping[str, Any]) -> None:
            owned = {"product": values["product"], "app_id": "local"}
            products.update_one(owned, {"$set": dict(values)}, upsert=True)

        stock_falls(server, put)


def test_document_of_postgres_begins_a_run_also_after_a_restart(
    tmp_path: Path, postgres_database: str
):
    asyncio.run(migrate(postgres_database))
    folder, environment = copy_examples(tmp_path), {"WEFT_STORE": postgres_database}
    with serving(folder, environment) as server:
        stock_falls(server, lambda values: put_here(server, values))
    asyncio.run(put_by_another_program(folder, environment))
    with serving(folder, environment) as server:
        runs = until_runs(server, "StockAlert", 3)
        assert first_event(server, runs[-1]["run"])["values"]["product"] == "Screw"
