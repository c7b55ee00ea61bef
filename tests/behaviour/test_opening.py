"""A host on a workspace, opened as a program would."""

import asyncio
import shutil
import traceback

import pytest

import weft
from support.cases import read_cases
from weft.adapters.sql import SqliteStore
from weft.app.hosts import LOCAL, open_host
from weft.engine.events import Event, ModelReplied
from weft.errors import CheckFailed, LinkError, ModelError, SetupError, StoreError, UsageError
from weft.packages.workspace import shipped_folder
from weft.ports.model import ModelReply
from weft.runtime.signals import Answer, Stop

CASES = read_cases(__file__)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_MODEL", "sample")
    for name in ("HelloWorld", "CustomerSupportRouter"):
        shutil.copytree(shipped_folder() / name, tmp_path / "workflows" / name)
    return tmp_path


def play(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_script_runs_a_workflow_in_one_call(workspace):
    state = weft.run("HelloWorld", "hi", workspace=workspace, journal=":memory:", model="sample")
    assert state.status in ("waiting", "ended")
    assert [message.role for message in state.messages][-1] == "agent"
    assert not (workspace / ".weft").exists()


def test_a_script_answers_the_questions(workspace):
    asked = []

    def answer(request):
        asked.append(request.kind)
        return "tell me more"

    state = weft.run("HelloWorld", workspace=workspace, answer=answer)
    assert state.status == "ended"
    assert set(asked) == {"chat"}
    assert sum(message.role == "user" for message in state.messages) == len(asked)


def test_a_script_gives_the_values_a_run_starts_with(workspace):
    state = weft.run(
        "HelloWorld",
        "hi",
        workspace=workspace,
        journal=":memory:",
        model="sample",
        values={"said_goodbye": True},
    )
    assert state.variables["said_goodbye"] is True


async def test_runs_are_kept_in_the_workspace_and_found_again(workspace):
    async with await open_host(workspace) as host:
        run = await host.start("HelloWorld", scope=LOCAL, message="hi")
        await host.settled(run, scope=LOCAL)
    assert (workspace / ".weft" / ".gitignore").read_text() == "*\n"
    async with await open_host(workspace) as host:
        assert [row.run for row in await host.runs(scope=LOCAL)] == [run]
        assert (await host.state(run, scope=LOCAL)).workflow == "HelloWorld"


async def test_a_package_that_changed_is_read_again_and_old_runs_keep_theirs(workspace):
    prompt = next((workspace / "workflows" / "HelloWorld").glob("agents.*"))
    async with await open_host(workspace, journal=":memory:") as host:
        first = await host.start("HelloWorld", scope=LOCAL, message="hi")
        same = await host.start("HelloWorld", scope=LOCAL, message="hi")
        text = prompt.read_text(encoding="utf-8")
        prompt.write_text(text.replace('content": "', 'content": "Now: ', 1), encoding="utf-8")
        changed = await host.start("HelloWorld", scope=LOCAL, message="hi")
        (first, same, changed) = [
            (await host.workflow(item, scope=LOCAL)).digest for item in (first, same, changed)
        ]
    assert first == same
    assert changed != first


async def test_a_package_with_errors_does_not_start(workspace):
    folder = workspace / "workflows" / "HelloWorld"
    (folder / "handoffs.json").write_text('{"handoff_rules": [{"source_agent": "Nobody"}]}')
    async with await open_host(workspace, journal=":memory:") as host:
        with pytest.raises(UsageError, match="no package HeloWorld") as missing:
            await host.start("HeloWorld", scope=LOCAL)
        assert missing.value.hint == "did you mean HelloWorld?"
        with pytest.raises(CheckFailed, match="cannot run") as failed:
            await host.start("HelloWorld", scope=LOCAL)
        assert failed.value.findings
        assert (await host.runs(scope=LOCAL)) == []


async def test_code_that_cannot_be_imported_is_named(workspace):
    folder = workspace / "workflows" / "CustomerSupportRouter" / "tools"
    tool = min(folder.glob("*.py"))
    tool.write_text("import no_such_module\n" + tool.read_text(encoding="utf-8"), encoding="utf-8")
    async with await open_host(workspace, journal=":memory:") as host:
        with pytest.raises(LinkError, match="no_such_module"):
            await host.start("CustomerSupportRouter", scope=LOCAL)


async def test_a_model_that_is_not_there_is_named_before_the_run_begins(workspace):
    async with await open_host(workspace, journal=":memory:", environment={}) as host:
        for model, said in (
            ("openai:gpt-9", "needs a key"),
            ("nowhere:x", "no model provider"),
            ("replay", "replay needs a run"),
            ("you", "the model you needs a person"),
        ):
            with pytest.raises(UsageError, match=said):
                await host.start("HelloWorld", scope=LOCAL, model=model)
        assert (await host.runs(scope=LOCAL)) == []


async def test_environment_names_the_default_model(workspace):
    settings = {"WEFT_MODEL": "nowhere:x"}
    async with await open_host(workspace, journal=":memory:", environment=settings) as host:
        with pytest.raises(UsageError, match="no model provider nowhere"):
            await host.start("HelloWorld", scope=LOCAL, message="hi")


def test_a_person_answers_for_the_model(workspace):
    async def person(request):
        return ModelReply(f"I am {request.agent}")

    async def scenario():
        async with await open_host(workspace, journal=":memory:", person=person) as host:
            run = await host.start("HelloWorld", scope=LOCAL, message="hi", model="you")
            await host.settled(run, scope=LOCAL)
            return await host.state(run, scope=LOCAL)

    assert list(play(scenario).messages)[-1].text.startswith("I am ")


async def test_a_run_is_replayed_from_another(workspace):
    async with await open_host(workspace, journal=":memory:") as host:
        first = await host.start("HelloWorld", scope=LOCAL, message="hi")
        await host.settled(first, scope=LOCAL)
        again = await host.start("HelloWorld", scope=LOCAL, message="hi", model=f"replay:{first}")
        await host.settled(again, scope=LOCAL)
        other = await host.start("HelloWorld", scope=LOCAL, message="ho", model=f"replay:{first}")
        row = await host.settled(other, scope=LOCAL)
        states = [await host.state(item, scope=LOCAL) for item in (first, again)]
        first, again = [[message.text for message in state.messages] for state in states]
    assert first == again
    assert row.outcome == "failed"
    assert "the request differs" in row.reason


async def test_a_workspace_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / ".weft").write_text("a file, not a folder")
    with pytest.raises(StoreError, match="runs cannot be kept in"):
        await open_host(tmp_path)


async def test_a_journal_of_ones_own_is_used(workspace, tmp_path):
    path = tmp_path / "mine.db"
    async with await open_host(workspace, journal=path, durability="normal") as host:
        await host.start("HelloWorld", scope=LOCAL, message="hi")
    journal = await SqliteStore.open(path)
    rows = await journal.runs(LOCAL)
    await journal.close()
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("name", "text", "said"), CASES["test_settings_that_make_no_sense_are_refused"]
)
async def test_settings_that_make_no_sense_are_refused(workspace, name, text, said):
    with pytest.raises(UsageError, match=f"{name} {said}"):
        await open_host(workspace, journal=":memory:", environment={name: text})


def test_operator_settings_apply(workspace):
    settings = {
        "WEFT_MODEL": "http://127.0.0.1:9/v1#nobody",
        "WEFT_MODEL_ATTEMPTS": "1",
        "WEFT_MODEL_TIMEOUT": "2.5",
        "WEFT_DURABILITY": "normal",
        "WEFT_TOOL_TIMEOUT": "7",
    }

    async def scenario(**more):
        async with await open_host(workspace, environment={**settings, **more}) as host:
            assert host._loader._limits.timeout == 7
            run = await host.start("HelloWorld", scope=LOCAL, message="hi")
            return await host.settled(run, scope=LOCAL)

    alone = play(scenario)
    assert alone.outcome == "failed"
    assert "127.0.0.1:9" in alone.reason
    helped = play(lambda: scenario(WEFT_FALLBACK_MODEL="http://127.0.0.1:9/v1#other"))
    assert "other" in helped.reason


NOBODY = "http://127.0.0.1:9/v1#nobody"
ELSEWHERE = "http://127.0.0.1:9/v1#elsewhere"


def answered_by(workspace, fallback, *, model=NOBODY, person=None):
    """Say who gives the first reply where the model that is named may not answer, or why nobody."""
    settings = {"WEFT_MODEL_ATTEMPTS": "1"}

    async def scenario():
        async with await open_host(workspace, environment=settings) as host:
            recorded = await host.start("HelloWorld", scope=LOCAL, message="hi", model="sample")
            await host.settled(recorded, scope=LOCAL)
        settings["WEFT_FALLBACK_MODEL"] = fallback.replace("RUN", recorded)
        async with await open_host(workspace, environment=settings, person=person) as host:
            run = await host.start("HelloWorld", scope=LOCAL, message="hi", model=model)
            row = await host.settled(run, scope=LOCAL)
            events = [
                event async for event in host.events(run, scope=LOCAL) if isinstance(event, Event)
            ]
            replies = [event.data for event in events if isinstance(event.data, ModelReplied)]
            if not replies:
                return row.reason
            assert replies[0].instead_of.startswith(f"{model}, which gave no answer: ")
            return replies[0].answerer

    return play(scenario)


async def somebody(_request):
    return ModelReply("here I am")


@pytest.mark.parametrize(
    ("fallback", "who"),
    [
        ("sample", "sample"),
        ("you", "you"),
        ("replay:RUN", "replay"),
        (f"{NOBODY}=sample", "sample"),
        (f"{ELSEWHERE}=you, {NOBODY}=sample", "sample"),
        (f"{ELSEWHERE}=you,sample", "sample"),
        (f"{NOBODY}=you,sample", "you"),
    ],
)
def test_any_model_may_stand_in_for_one_that_does_not_answer(workspace, fallback, who):
    assert answered_by(workspace, fallback, person=somebody) == who


def test_a_pair_is_for_its_own_model_only(workspace):
    reason = answered_by(workspace, f"{ELSEWHERE}=sample")
    assert "nobody" in reason
    assert "The fallback" not in reason


def test_mutual_fallbacks_are_not_a_cycle(workspace):
    reason = answered_by(workspace, f"{NOBODY}={ELSEWHERE},{ELSEWHERE}={NOBODY}")
    assert reason.count("The fallback failed too") == 1
    assert "The fallback" not in answered_by(workspace, NOBODY)


def test_a_recording_that_does_not_fit_is_a_fallback_that_failed(workspace):
    reason = answered_by(workspace, "replay:gone")
    assert "The fallback failed too: run gone has no recorded answer" in reason


def test_no_other_model_speaks_for_a_person_unless_it_is_named(workspace):
    async def nobody(_request):
        raise ModelError("they have gone home")

    reason = answered_by(workspace, "sample", model="you", person=nobody)
    assert "they have gone home" in reason
    assert answered_by(workspace, "you=sample", model="you", person=nobody) == "sample"


def test_a_fallback_that_cannot_be_is_refused(workspace):
    with pytest.raises(UsageError, match="the model you needs a person"):
        answered_by(workspace, "you")
    with pytest.raises(UsageError, match="there is no model provider nowhere"):
        answered_by(workspace, "nowhere:x")
    with pytest.raises(UsageError, match="unknown model gpt-9 in WEFT_FALLBACK_MODEL") as fault:
        answered_by(workspace, "gpt-9=sample")
    assert fault.value.hint == "write PROVIDER:MODEL=OTHER, with a known provider"


async def test_a_waiting_run_is_not_touched_where_its_model_is_missing(workspace):
    key = {"OPENAI_API_KEY": "sk-x"}
    async with await open_host(workspace, environment=key) as host:
        run = await host.start("HelloWorld", scope=LOCAL, model="openai:gpt-9")
        assert (await host.settled(run, scope=LOCAL)).status == "waiting"
    async with await open_host(workspace, environment={}) as host:
        (request,) = await host.requests(scope=LOCAL, run=run)
        for attempt in (
            host.deliver(run, Answer(request.id, "hi"), scope=LOCAL),
            host.resume(run, scope=LOCAL),
        ):
            with pytest.raises(SetupError, match="needs a key"):
                await attempt
        assert (await host.run(run, scope=LOCAL)).status == "waiting"
        await host.deliver(run, Stop(), scope=LOCAL)
        assert (await host.settled(run, scope=LOCAL)).outcome == "cancelled"


def test_script_gets_errors_for_impossible_commands(workspace):
    with pytest.raises(UsageError, match="a message is text, not int"):
        weft.run("HelloWorld", 5, workspace=workspace, journal=":memory:")
    with pytest.raises(UsageError, match="the model you needs a person"):
        weft.run("HelloWorld", "hi", workspace=workspace, journal=":memory:", model="you")


async def test_script_runner_is_refused_in_an_event_loop(workspace):
    with pytest.raises(UsageError, match="an event loop is already running"):
        weft.run("HelloWorld", "hi", workspace=workspace, journal=":memory:")


@pytest.mark.parametrize("journal", [None, ":memory:"])
def test_a_workspace_that_is_not_there_is_named(tmp_path, journal):
    for place in (tmp_path / "nope", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(UsageError, match=f"there is no folder {place}"):
            weft.run("HelloWorld", "hi", workspace=place, journal=journal)
    assert not (tmp_path / "nope").exists()


def test_suggestion_is_shown_with_a_traceback(workspace):
    with pytest.raises(UsageError) as caught:
        weft.run("HelloWord", "hi", workspace=workspace)
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.endswith("\nhint: did you mean HelloWorld?\n")
    with pytest.raises(UsageError) as caught:
        weft.run("HelloWorld", 3, workspace=workspace)
    assert not hasattr(caught.value, "__notes__")
