"""weft worker: real processes that claim runs, drain, die, and share a store."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.postgres_server import empty_postgres_database
from support.slow_tool import SLOW_GREET
from weft.app.hosts import open_host
from weft.app.store_admin import create_store
from weft.engine.events import Event, ModelReplied
from weft.ports.live import TextDelta
from weft.ports.scope import Scope

ADA = Scope("shop", "ada")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, monkeypatch):
    """The store of the workspace: its own file, or a new PostgreSQL database."""
    monkeypatch.delenv("WEFT_STORE", raising=False)
    if request.param == "sqlite":
        yield ""
        return
    with empty_postgres_database(request.getfixturevalue("postgres_url")) as url:
        asyncio.run(create_store(url))
        monkeypatch.setenv("WEFT_STORE", url)
        yield url


@pytest.fixture
def shop(desk, monkeypatch):
    """A workspace whose package HelloWorld has a tool that can be slow."""
    (desk / "workflows/HelloWorld/tools/greet.py").write_text(SLOW_GREET)
    set_seconds(0)
    monkeypatch.setenv("WEFT_MODEL", "sample")
    return desk


def set_seconds(seconds):
    Path("seconds.txt").write_text(str(seconds))


def calls():
    file = Path("calls.txt")
    return file.read_text().split() if file.exists() else []


def start(*, count=1, scope=ADA, model="sample", environment=None):
    """Start runs that other processes perform."""

    async def begin():
        given = {} if environment is None else {"environment": {**os.environ, **environment}}
        async with await open_host(works=False, **given) as host:
            names = range(count)
            return [
                await host.start("HelloWorld", scope=scope, message="hi", model=model)
                for _ in names
            ]

    return asyncio.run(begin())


def rows_of(runs, scope=ADA):
    async def read():
        async with await open_host(reading=True) as host:
            return [await host.run(run, scope=scope) for run in runs]

    return asyncio.run(read())


def wait_until(is_so, seconds=30):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def all_completed(runs, scope=ADA):
    return all(row.outcome == "completed" for row in rows_of(runs, scope))


@contextmanager
def working(*options, **environment):
    """A worker that is ready; it is killed at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "weft", "worker", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            process.ready = process.stdout.readline()
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def stop(process, number=signal.SIGTERM):
    """Send a signal; return the exit code and what was printed to stderr."""
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def test_worker_completes_runs_of_all_tenants(shop, store):
    bob = Scope("bank", "bob")
    first, second = start(), start(scope=bob)
    with working("--verbose") as worker:
        owner = worker.ready.split("owner ")[1].split(",")[0]
        assert f", pid {worker.pid}\n" in worker.ready
        wait_until(lambda: all_completed(first) and all_completed(second, bob))
        third = start()  # It is noticed without a restart.
        wait_until(lambda: all_completed(third))
        code, err = stop(worker)
    assert (code, len(owner)) == (0, 26)
    for run, app in ((first[0], "shop"), (second[0], "bank")):
        assert f"claimed run {run} of tenant {app}\n" in err
        assert f"released run {run} of tenant {app}\n" in err
    assert err.endswith("stopped: 0 runs released for other workers\n")
    assert sorted(calls()) == ["begin"] * 3 + ["end"] * 3


def test_metrics_of_a_worker_and_of_a_server_without_work(shop, weft):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    runs = start()
    with working("--metrics", address) as worker:
        wait_until(lambda: all_completed(runs))
        with urlopen(f"http://{address}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        again = weft("worker", "--metrics", address)
        assert stop(worker)[0] == 0
    assert re.search(
        r'weft_turns_total\{agent="\w+",outcome="ended",workflow="HelloWorld"\} 1', text
    )
    assert re.search(r'weft_worker_heartbeat_age_seconds\{owner="\w{26}"\} [\d.]+', text)
    assert (again.code, f"cannot listen on {address}" in again.err) == (3, True)
    wrong = weft("worker", "--metrics", "9464")
    assert (wrong.code, "write HOST:PORT" in wrong.err) == (2, True)


def test_sigterm_finishes_the_call_under_way_and_releases_the_run(shop, store):
    set_seconds(2)
    runs = start()
    with working() as worker:
        wait_until(lambda: calls() == ["begin"])
        code, err = stop(worker)
    assert (code, err) == (0, "stopped: 1 run released for other workers\n")
    assert calls() == ["begin", "end"]
    [row] = rows_of(runs)
    assert (row.status, row.owner) == ("running", "")
    with working() as worker:
        wait_until(lambda: all_completed(runs))
        assert stop(worker, signal.SIGINT)[0] == 0
    assert calls() == ["begin", "end"]  # The result of the first worker was used.


@pytest.mark.parametrize(("options", "signals"), [(("--drain", "0"), 1), ((), 2)])
def test_drain_ends_when_its_time_is_over_or_with_a_second_signal(shop, options, signals):
    set_seconds(20)
    runs = start()
    with working(*options) as worker:
        wait_until(lambda: calls() == ["begin"])
        begun = time.monotonic()
        for _ in range(signals):
            worker.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        assert worker.wait(15) == 0
        assert time.monotonic() - begun < 9
    [row] = rows_of(runs)
    assert (row.status, row.owner) == ("running", "")


def test_killed_worker_is_replaced_within_six_seconds(shop, store):
    set_seconds(30)
    runs = start()
    with working() as worker, working() as other:
        wait_until(lambda: calls() == ["begin"])
        owner = rows_of(runs)[0].owner
        holder = worker if owner in worker.ready else other
        assert owner in holder.ready
        set_seconds(0)
        holder.kill()
        killed = time.monotonic()
        wait_until(lambda: all_completed(runs))
        assert time.monotonic() - killed < 9  # 6 s, and time to read.
    assert calls() == ["begin", "begin", "end"]


def test_two_workers_share_a_store_and_perform_each_call_once(shop, store):
    with working() as worker, working() as other:
        runs = start(count=12)
        wait_until(lambda: all_completed(runs))
        assert [stop(each) for each in (worker, other)] == [
            (0, "stopped: 0 runs released for other workers\n")
        ] * 2
    assert calls().count("begin") == calls().count("end") == 12


@pytest.mark.parametrize("is_first", [True, False])
def test_text_that_a_worker_streams_reaches_a_gateway(shop, is_first):
    """S12: on one file without any setting, also if the worker begins after the follower."""
    set_seconds(0.5)  # The follower is there before the last model call.

    async def follow(host):
        run = await host.start("HelloWorld", scope=ADA, message="hi", model="sample")
        items = [item async for item in host.events(run, scope=ADA, follow=True)]
        streamed = "".join(item.text for item in items if isinstance(item, TextDelta))
        return streamed, [item.data for item in items if isinstance(item, Event)]

    async def play():
        async with await open_host(works=False) as host, AsyncExitStack() as stack:
            following = None if is_first else asyncio.create_task(follow(host))
            await asyncio.sleep(0.2)
            worker = await asyncio.to_thread(stack.enter_context, working())
            streamed, events = await (following or follow(host))
            assert await asyncio.to_thread(stop, worker) == (
                0,
                "stopped: 0 runs released for other workers\n",
            )
            return streamed, events

    streamed, events = asyncio.run(play())
    said = [event.text for event in events if isinstance(event, ModelReplied) and event.text]
    assert said[-1] in streamed
    assert not Path(".weft/journal.db-live").exists()


def test_run_with_an_unknown_model_is_left_and_named(shop, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    [keyless] = start(model="openai:gpt-5-mini", environment={"OPENAI_API_KEY": "k"})
    [unnamed] = start(model=None, environment={"WEFT_MODEL": "sample"})
    known = start()
    monkeypatch.delenv("WEFT_MODEL")
    with working() as worker:
        wait_until(lambda: all_completed(known))
        code, err = stop(worker)
    assert code == 0
    left = "of tenant shop is left to other workers"
    assert (
        f"warning: run {keyless} {left}: openai:gpt-5-mini needs a key; set OPENAI_API_KEY" in err
    )
    assert f"warning: run {unnamed} {left}: no model is named for HelloWorld; " in err
    assert "set WEFT_MODEL" in err
    assert "Traceback" not in err
    assert [row.status for row in rows_of([keyless, unnamed])] == ["running", "running"]


def test_published_artifact_is_processed_and_its_run_is_found_by_correlation(weft, shop):
    words = "headline=Rain source=radio contact=Ada urgency=3 --correlation Rain-7 --no-wait"
    assert weft("board", "publish", "NewsDesk", "Lead", *words.split()).code == 0
    with working():
        wait_until(lambda: len(weft("board", "list", "NewsDesk").out.splitlines()) > 1)
    shown = weft("runs", "show", "rain-7", "--json").data["run"]
    assert shown["name"].endswith("/Rain-7")
    assert weft("runs", "show", "ain-7").code == 6


def test_ready_line_for_programs_hides_the_password(shop, postgres_url):
    with empty_postgres_database(postgres_url) as url:
        asyncio.run(create_store(url))
        address = url.replace("://weft@", "://weft:secret@")
        with working("--json", "--journal", address) as worker:
            ready = json.loads(worker.ready)["ready"]
            assert stop(worker) == (0, "")
    assert ready["pid"] == worker.pid
    assert "secret" not in worker.ready


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--journal", "mysql://db/weft"], 2, "must be a file or an address of PostgreSQL"),
        (["--journal", ":memory:"], 2, "keeps nothing after the command ends"),
        (["--drain", "-1"], 2, 'invalid value "-1" for --drain'),
        (["--drain", "nan"], 2, 'invalid value "nan" for --drain'),
        (["--journal", "postgresql://me:secret@localhost:1/x"], 3, "cannot be reached"),
    ],
)
def test_worker_that_cannot_start_says_why(weft, shop, words, code, message):
    result = weft("worker", *words)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "secret" not in result.err
