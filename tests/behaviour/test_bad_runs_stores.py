"""Journals that cannot be written for a while, and several processes on one of them."""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from behaviour.bad_run_play import ADA, child, finished, open_host, play, spec
from support.journal_play import look
from weft.engine.events import RequestExpired
from weft.errors import AccessDenied, RunError, StoreError, UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.models import FunctionModel, call

SPEC = spec()
CHAT = spec(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])


def done(_request):
    return "Done."


LOCKER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
if sys.argv[2] == "for ever":
    sys.stdin.readline()
else:
    time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
"""


@contextmanager
def locked(path, seconds):
    """Let another process hold the right to write, for some seconds or until the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", LOCKER, str(path), str(seconds)]
    with subprocess.Popen(command, **pipes) as locker:
        assert locker.stdout.readline() == "locked\n"
        yield
        locker.communicate("\n", timeout=30)
    assert locker.returncode == 0


async def test_a_journal_that_is_locked_for_a_second_stops_nothing(tmp_path):
    path = tmp_path / "journal.db"
    async with await open_host(path, SPEC, FunctionModel(done)) as host:
        with locked(path, 1.0):
            begun = time.monotonic()
            told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
            assert time.monotonic() - begun > 0.5
        assert told.row.outcome == "completed"


def test_locked_journal_is_explained_and_the_run_continues_later(tmp_path, monkeypatch):
    for module in ("runs.writer", "gateway"):
        monkeypatch.setattr(f"weft.runtime.{module}.PAUSES", (10, 40, 160))
    path = tmp_path / "journal.db"
    held = asyncio.Event()

    async def reply(_request):
        await held.wait()
        return "Done."

    async def scenario():
        async with await open_host(path, SPEC, FunctionModel(reply)) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            with locked(path, "for ever"):
                held.set()
                with pytest.raises(RunError, match="another process is writing to it"):
                    await host.settled(run, scope=ADA)
                with pytest.raises(StoreError, match="another process is writing to it"):
                    await host.start("Desk", scope=ADA, message="hi")
                # What was written can be read, even now.
                assert (await host.run(run, scope=ADA)).status == "running"
            await host.resume(run, scope=ADA)
            told = await finished(host, run)
            other = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
            assert len(await host.runs(scope=ADA)) == 2, "the start that was refused left nothing"
            return told, other

    told, other = play(scenario)
    assert told.row.outcome == other.row.outcome == "completed"


DISK = """
import asyncio, json, resource, signal, sys
from pathlib import Path
from behaviour.bad_run_play import ADA, finished, open_host, spec
from weft.errors import RunError, StoreError
from weft.runtime.runs import writer
from weft.testing.models import FunctionModel

writer.PAUSES = (10, 40, 160)

async def main():
    path = Path(sys.argv[1])
    # Beyond the limit writing fails, as on a full disk, instead of ending the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    def reply(request):
        return "x" * 200_000
    said = []
    async with await open_host(path, spec(), FunctionModel(reply)) as host:
        first = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        said.append(first.row.outcome)
        size = max(file.stat().st_size for file in path.parent.iterdir())
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, unlimited[1]))
        run = await host.start("Desk", scope=ADA, message="hi")
        try:
            await host.settled(run, scope=ADA)
        except RunError as error:
            said.append(str(error))
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        await host.resume(run, scope=ADA)
        said.append((await finished(host, run)).row.outcome)
        last = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        said.append(last.row.outcome)
    print(json.dumps(said))

asyncio.run(main())
"""


def test_full_disk_is_explained_and_the_run_continues_later(tmp_path):
    path = tmp_path / "journal.db"
    first, fault, resumed, last = told_by(DISK, str(path))
    assert first == resumed == last == "completed"
    assert "stopped" in fault
    assert "disk" in fault
    assert "weft runs resume" in fault
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def told_by(code, *arguments):
    process = child(code, *arguments)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


RIVAL = """
import asyncio, json
from pathlib import Path
from behaviour.bad_run_play import ADA, open_host, spec
from weft.errors import UsageError
from weft.runtime.signals import Answer, UserMessage
from weft.testing.models import FunctionModel

CHAT = spec(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])
RUNS = [f"run-{number}" for number in range(8)]

async def main():
    host = await open_host(Path(sys.argv[1]), CHAT, FunctionModel(lambda _: "What else?"))
    print("ready", flush=True)
    sys.stdin.readline()
    async with host:
        started, answered = [], []
        for run in RUNS:
            try:
                await host.start("Desk", scope=ADA, message=f"from {sys.argv[2]}", run=run)
                started.append(run)
            except UsageError:
                pass
        for run in RUNS:
            while (await host.run(run, scope=ADA)).status != "waiting":
                await asyncio.sleep(0.01)
        print(json.dumps(started), flush=True)
        for run, question in zip(RUNS, sys.stdin.readline().split()):
            try:
                await host.deliver(run, Answer(question, f"by {sys.argv[2]}"), scope=ADA)
                answered.append(run)
            except UsageError:
                pass
        for run in RUNS:
            while (await host.run(run, scope=ADA)).status != "waiting":
                await asyncio.sleep(0.01)
    print(json.dumps(answered))

asyncio.run(main())
"""


def test_two_processes_start_and_answer_the_same_runs(tmp_path):
    path = tmp_path / "journal.db"
    names = [f"run-{number}" for number in range(8)]
    rivals = [child(RIVAL, str(path), name) for name in ("one", "two")]

    def tell(line):
        for rival in rivals:
            rival.stdin.write(line + "\n")
            rival.stdin.flush()

    assert [rival.stdout.readline() for rival in rivals] == ["ready\n"] * 2
    tell("go")
    started = [json.loads(rival.stdout.readline()) for rival in rivals]
    assert sorted(started[0] + started[1]) == names, "each run was started by exactly one"

    async def questions():
        async with await open_host(path, CHAT, FunctionModel(done)) as host:
            return [(await host.requests(scope=ADA, run=name))[0].id for name in names]

    tell(" ".join(play(questions)))
    answered = [json.loads(rival.communicate(timeout=60)[0]) for rival in rivals]
    assert sorted(answered[0] + answered[1]) == names, "each question was answered by exactly one"
    assert [rival.returncode for rival in rivals] == [0, 0]

    async def stories():
        async with await open_host(path, CHAT, FunctionModel(done)) as host:
            return [await finished(host, name) for name in names]

    for told in play(stories):
        by = "one" if told.row.run in started[0] else "two"
        assert told.state.preview == f"from {by}"
        by = "one" if told.row.run in answered[0] else "two"
        assert [entry.value for entry in told.answered] == [f"by {by}"]
        assert [event.seq for event in told.events] == list(range(1, told.row.seq + 1))
        assert told.row.status == "waiting"
        assert told.row.turns == 2


async def test_answers_and_messages_from_outside_the_scope_change_nothing(tmp_path):
    async with await open_host(tmp_path / "j.db", CHAT, FunctionModel(done)) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        before = await finished(host, run)
        (question,) = before.state.requests
        for scope in (Scope("app", "bob"), Scope("other", "ada"), Scope.operator("other")):
            for signal in (Answer(question, "mine"), UserMessage("mine"), Stop()):
                with pytest.raises(AccessDenied, match=f"^there is no run {run}$"):
                    await host.deliver(run, signal, scope=scope)
            with pytest.raises(AccessDenied, match="there is no run nothing"):
                await host.deliver("nothing", Answer(question, "mine"), scope=scope)
            assert await host.requests(scope=scope, run=run) == []
        assert await finished(host, run) == before
        with pytest.raises(UsageError, match="is not open"):
            await host.deliver(run, Answer(f"{run}:99", "guess"), scope=ADA)
        await host.deliver(run, Answer(question, "mine"), scope=Scope.operator("app"))
        assert [entry.value for entry in (await finished(host, run)).answered] == ["mine"]


def test_a_damaged_run_does_not_keep_the_others_from_going_on(tmp_path):
    path = tmp_path / "journal.db"

    async def never(_request):
        await asyncio.Event().wait()

    async def scenario():
        async with await open_host(path, SPEC, FunctionModel(never)) as host:
            runs = [await host.start("Desk", scope=ADA, message="hi") for _ in range(3)]
        look(path, "UPDATE events SET data = '{' WHERE run = ? AND seq = 2", runs[0])
        async with await open_host(path, SPEC, FunctionModel(done)) as host:
            assert sorted(await host.recover()) == sorted(runs[1:])
            with pytest.raises(RunError, match=r"event 2 of run .* cannot be read"):
                await host.settled(runs[0], scope=ADA)
            return [(await finished(host, run)).row.outcome for run in runs[1:]]

    assert play(scenario) == ["completed", "completed"]


@pytest.mark.parametrize("damaged", ["{", "[]", '{"spec": 5, "code": {}}', '{"spec": {}}'])
def test_a_damaged_package_keeps_nothing_but_its_own_runs_from_going_on(tmp_path, damaged):
    path = tmp_path / "j.db"
    other = spec(variables={"other": "int"})

    async def never(_):
        await asyncio.Event().wait()

    async def scenario():
        async with await open_host(path, other, FunctionModel(never)) as host:
            first = await host.start("Desk", scope=ADA, message="hi")
            digest = (await host.run(first, scope=ADA)).digest
        async with await open_host(path, SPEC, FunctionModel(never)) as host:
            second = await host.start("Desk", scope=ADA, message="hi")
        look(path, f"UPDATE packages SET content = '{damaged}' WHERE digest = ?", digest)
        async with await open_host(path, SPEC, FunctionModel(done)) as host:
            assert await host.recover() == [second]
            with pytest.raises(RunError, match="the package of a run cannot be read"):
                await host.settled(first, scope=ADA)
            with pytest.raises(StoreError, match="the package of a run cannot be read"):
                await host.deliver(first, Stop(), scope=ADA)
            return (await finished(host, second)).row.outcome

    assert play(scenario) == "completed"


async def test_run_id_of_another_user_is_refused_without_details(tmp_path):
    async with await open_host(tmp_path / "j.db", SPEC, FunctionModel(done)) as host:
        await finished(host, await host.start("Desk", scope=ADA, message="hi", run="mine"))
        for scope in (ADA, Scope("app", "bob")):
            with pytest.raises(UsageError) as refused:
                await host.start("Desk", scope=scope, message="hi", run="mine")
            assert str(refused.value) == "run mine was started before"


async def test_another_tenant_may_give_its_run_the_same_name(tmp_path):
    other = Scope("other", "ada")
    async with await open_host(tmp_path / "j.db", SPEC, FunctionModel(done)) as host:
        first = await finished(host, await host.start("Desk", scope=ADA, message="a", run="r"))
        await host.start("Desk", scope=other, message="b", run="r")
        row = await host.settled("r", scope=other)
        assert await finished(host, "r") == first
        (first, second) = first.row, row
    assert (first.app, first.preview, first.outcome) == ("app", "a", "completed")
    assert (second.app, second.preview, second.outcome) == ("other", "b", "completed")


EXPIRING = b'''
from weft import Ask


def ask(context_variables) -> str:
    """Ask somebody who does not answer."""
    if not context_variables.answers:
        raise Ask("now?", timeout=0.05, otherwise="never")
    return context_variables.answers[0]
'''


def test_two_hosts_let_a_question_expire_once_and_without_complaint(tmp_path, caplog):
    path, declared = tmp_path / "j.db", spec(ui=("ask",))

    def reply(request):
        return "Done." if request.messages[-1]["role"] == "tool" else call("ask")

    async def scenario():
        first = await open_host(path, declared, FunctionModel(reply), EXPIRING)
        second = await open_host(path, declared, FunctionModel(reply), EXPIRING)
        async with first, second:
            runs = [await first.start("Desk", scope=ADA, message="hi") for _ in range(10)]
            await second.recover()
            for run in runs:
                row = await first.settled(run, scope=ADA)
                while row.status != "ended":
                    await asyncio.sleep(0.01)
                    row = await first.settled(run, scope=ADA)
            return [await finished(first, run) for run in runs]

    for told in play(scenario):
        assert told.row.outcome == "completed"
        told.only(RequestExpired)
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
