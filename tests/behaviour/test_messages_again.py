"""A message counts once, however often, from wherever and whenever it is delivered."""

import asyncio
import json

import pytest

from behaviour.bad_run_play import ADA, child, finished, open_host, play, spec
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.errors import SetupError, UsageError
from weft.runtime.signals import MAX_ID, Answer, Stop, UserMessage
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

FORM = b'''
from weft import Ask


def ask(context_variables) -> str:
    """Ask a person."""
    if not context_variables.answers:
        raise Ask("which?")
    return context_variables.answers[0]
'''
CODE = {"tools/work.py": FORM}

CHAT = spec(ui=("ask",), handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])


def on(_request):
    return "What else?"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


async def chat(path, model=None):
    """Open a host on a file, with one run that waits for a message."""
    host = await open_host(path, CHAT, model or FunctionModel(on), FORM)
    await host.start("Desk", scope=ADA, message="hi", run="run")
    await host.settled("run", scope=ADA)
    return host


async def tell(host, *messages):
    """Let messages in, each when the run has come to rest; return what is left of it."""
    for message in messages:
        await host.deliver("run", message, scope=ADA)
        await host.settled("run", scope=ADA)
    return await finished(host, "run")


def heard(told):
    """What was let in, by name and text, in order."""
    return [(entry.message_id, entry.value) for entry in told.answered]


@pytest.mark.parametrize("lasting", [False, True], ids=["memory", "sqlite"])
async def test_a_message_that_comes_again_after_the_run_has_rested_counts_once(path, lasting):
    message, other = UserMessage("yes"), UserMessage("yes")
    journal = await SqliteStore.open(path) if lasting else MemoryStore()
    async with host_for(CHAT, FunctionModel(on), store=journal, code=CODE) as host:
        await host.start("Desk", scope=ADA, message="hi", run="run")
        await host.settled("run", scope=ADA)
        once = await tell(host, message)
        again = await tell(host, message, message)
        assert not host._worker, "there is nothing to do but to wait for the user"
        after = await tell(host, other, message)
    assert once == again
    assert heard(after) == [(message.id, "yes"), (other.id, "yes")]
    assert [message.text for message in after.state.messages if message.role == "user"] == [
        "hi",
        "yes",
        "yes",
    ]
    assert after.row.turns == 3


def test_every_message_is_one_of_its_own_unless_it_is_named():
    assert UserMessage("yes") != UserMessage("yes")
    assert UserMessage("yes", id="m1") == UserMessage("yes", id="m1")
    assert len({UserMessage("yes").id for _ in range(100)}) == 100


async def test_a_message_with_the_name_of_another_is_that_one_whatever_it_says(path):
    async with await chat(path) as host:
        outcome = await tell(host, UserMessage("yes", id="m1"), UserMessage("no", id="m1"))
    assert heard(outcome) == [("m1", "yes")]


async def test_the_same_name_in_another_run_is_another_message(path):
    message = UserMessage("yes", id="m1")
    async with await chat(path) as host:
        await host.start("Desk", scope=ADA, message="hi", run="other")
        await host.settled("other", scope=ADA)
        await tell(host, message)
        await host.deliver("other", message, scope=ADA)
        assert heard(await finished(host, "other")) == [("m1", "yes")]


async def test_a_message_that_another_host_has_let_in_is_known(path):
    async with (
        await chat(path) as here,
        await open_host(path, CHAT, FunctionModel(on), FORM) as there,
    ):
        once = await tell(here, UserMessage("yes", id="m1"))
        again = await tell(there, UserMessage("yes", id="m1"))
        after = await tell(there, UserMessage("yes", id="m2"))
    assert once == again
    assert heard(after) == [("m1", "yes"), ("m2", "yes")]


async def test_a_message_that_comes_often_at_the_same_moment_counts_once(path):
    message = UserMessage("yes", id="m1")
    async with (
        await chat(path) as here,
        await open_host(path, CHAT, FunctionModel(on), FORM) as there,
    ):
        hosts = [here, there] * 5
        await asyncio.gather(*(host.deliver("run", message, scope=ADA) for host in hosts))
        told = [await finished(item, "run") for item in (here, there)]
        assert told[0] == told[1]
        told = told[0]
    assert heard(told) == [("m1", "yes")]
    assert told.row.turns == 2


class Overtaken(SqliteStore):
    """Lets somebody else write first, once."""

    first = None

    async def append(self, batch, *, owner):
        first, self.first = self.first, None
        if first is not None:
            await first()
        return await super().append(batch, owner=owner)


@pytest.mark.parametrize(("name", "fault"), [("m1", None), ("m2", "is not open")])
async def test_concurrent_copies_of_a_message_raise_no_error(path, name, fault):
    async with await chat(path) as there:
        journal = await Overtaken.open(path)
        async with host_for(CHAT, FunctionModel(on), store=journal, code=CODE) as here:

            async def overtake():
                await tell(there, UserMessage("yes", id=name))

            journal.first = overtake
            if fault is None:
                await here.deliver("run", UserMessage("yes", id="m1"), scope=ADA)
            else:
                with pytest.raises(UsageError, match=fault):
                    await here.deliver("run", UserMessage("yes", id="m1"), scope=ADA)
            assert journal.first is None
            assert heard(await finished(here, "run")) == [(name, "yes")]


RIVAL = """
import asyncio, json
from pathlib import Path
from behaviour.test_messages_again import (
    ADA, CHAT, FORM, FunctionModel, UserMessage, on, open_host
)
from weft.errors import ConflictError

async def main():
    async with await open_host(Path(sys.argv[1]), CHAT, FunctionModel(on), FORM) as host:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(8):
            message = UserMessage("yes", id=f"m{number}")
            # The other one is told the same, and may be ahead by some messages. While it repeats
            # an old one, the request counts as answered for a moment.
            for _ in range(2):
                while True:
                    await host.settled("run", scope=ADA)
                    try:
                        await host.deliver("run", message, scope=ADA)
                    except ConflictError:
                        continue
                    break
        await host.settled("run", scope=ADA)
    print(json.dumps("told"))

asyncio.run(main())
"""


def test_two_processes_that_deliver_the_same_messages(path):
    async def begun():
        await (await chat(path)).close()

    async def looked_at():
        async with await open_host(path, CHAT, FunctionModel(on), FORM) as host:
            return await finished(host, "run")

    play(begun)
    rivals = [child(RIVAL, str(path)) for _ in range(2)]
    assert [rival.stdout.readline() for rival in rivals] == ["ready\n"] * 2
    for rival in rivals:
        rival.stdin.write("go\n")
        rival.stdin.flush()
    told = [json.loads(rival.communicate(timeout=60)[0]) for rival in rivals]
    assert told == ["told", "told"]
    assert heard(play(looked_at)) == [(f"m{number}", "yes") for number in range(8)]


async def test_signal_can_be_delivered_again_after_a_cancelled_wait(path):
    message = UserMessage("yes", id="m1")
    async with await chat(path) as host:
        for steps in range(12):
            impatient = asyncio.create_task(host.deliver("run", message, scope=ADA))
            for _ in range(steps):
                await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.gather(impatient, return_exceptions=True)
        assert heard(await tell(host, message)) == [("m1", "yes")]


async def test_repeated_message_is_ignored_while_the_run_continues(path):
    held = asyncio.Event()

    async def reply(request):
        if request.messages[-1]["content"] == "yes":
            await held.wait()
        return "What else?"

    async with await chat(path, FunctionModel(reply)) as host:
        await host.deliver("run", UserMessage("yes", id="m1"), scope=ADA)
        before = (await host.run("run", scope=ADA)).seq
        await host.deliver("run", UserMessage("yes", id="m1"), scope=ADA)
        with pytest.raises(UsageError, match="does not wait for a message"):
            await host.deliver("run", UserMessage("yes", id="m2"), scope=ADA)
        row = await host.run("run", scope=ADA)
        assert (row.status, row.seq) == ("running", before)
        held.set()
        assert heard(await finished(host, "run")) == [("m1", "yes")]


async def test_a_message_that_comes_again_while_a_form_is_open(path):
    script = ScriptedModel(["What else?", call("ask"), "What else?", "What else?"])
    async with await chat(path, script) as host:
        once = await tell(host, UserMessage("yes", id="m1"))
        (question,) = once.state.requests
        late = UserMessage("no", id="m2")
        with pytest.raises(UsageError, match="does not wait for a message"):
            await host.deliver("run", late, scope=ADA)
        assert await tell(host, UserMessage("yes", id="m1")) == once
        await tell(host, Answer(question, "tea"))
        # What was refused was not heard: it may come again, and then it counts.
        told = await tell(host, late, late, UserMessage("yes", id="m1"))
    assert heard(told) == [("m1", "yes"), (None, "tea"), ("m2", "no")]
    assert script.left == 0


async def test_a_message_that_comes_again_after_the_end(path):
    async with await chat(path) as host:
        await tell(host, UserMessage("yes", id="m1"))
        once = await tell(host, Stop())
        assert await tell(host, UserMessage("yes", id="m1")) == once
        with pytest.raises(UsageError, match="has ended already"):
            await host.deliver("run", UserMessage("yes", id="m2"), scope=ADA)
    assert once.row.outcome == "cancelled"
    assert heard(once) == [("m1", "yes")]


async def test_repeated_message_needs_no_model(path):
    def missing(*_):
        raise SetupError("there is no key")

    async with await chat(path) as host:
        once = await tell(host, UserMessage("yes", id="m1"))
        host._require_models = missing
        assert await tell(host, UserMessage("yes", id="m1")) == once
        with pytest.raises(SetupError, match="there is no key"):
            await host.deliver("run", UserMessage("yes", id="m2"), scope=ADA)


async def test_fork_keeps_earlier_message_ids(path):
    async with await chat(path) as host:
        first, second = UserMessage("one", id="m1"), UserMessage("two", id="m2")
        await tell(host, first, second)
        fork = await host.fork("run", scope=ADA, turn=2)
        for message in (first, second, second):
            await host.settled(fork, scope=ADA)
            await host.deliver(fork, message, scope=ADA)
        assert heard(await finished(host, fork)) == [("m1", "one"), ("m2", "two")]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "has 1 to 200 characters, not 0"),
        ("x" * (MAX_ID + 1), "has 1 to 200 characters, not 201"),
        ("\ud800", "is not valid Unicode text"),
        (None, "is text, not NoneType"),
        (5, "is text, not int"),
        ([], "is text, not list"),
    ],
)
async def test_invalid_message_id_is_refused(path, name, fault):
    async with await chat(path) as host:
        once = await finished(host, "run")
        with pytest.raises(UsageError, match=f"^the id of a message {fault}"):
            await host.deliver("run", UserMessage("yes", id=name), scope=ADA)
        assert await finished(host, "run") == once
        await tell(host, Stop())
        with pytest.raises(UsageError, match=fault):
            await host.deliver("run", UserMessage("yes", id=name), scope=ADA)


@pytest.mark.parametrize("name", ["x" * MAX_ID, " ", "caf\u00e9 \U0001f600", "\x00", "run:1"])
async def test_any_text_that_is_not_too_long_names_a_message(path, name):
    async with await chat(path) as host:
        outcome = await tell(host, UserMessage("yes", id=name), UserMessage("yes", id=name))
    assert heard(outcome) == [(name, "yes")]
