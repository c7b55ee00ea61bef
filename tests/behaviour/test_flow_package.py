"""Flows built in code and flows as files: the same spec, the same digest, the same runs."""

import json
from typing import Annotated

import pytest
from pydantic import BaseModel

import weft
from support.flow_options import waits
from weft.app.folders import LOCAL
from weft.cli.app import main
from weft.errors import CheckFailed, UsageError
from weft.flow import Append, Merge, Workflow, agent, open_flow, run_flow
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.packages.writer import write_package
from weft.runtime.signals import Answer
from weft.spec.workflow import WorkflowSpec, digest
from weft.testing import ScriptedModel


class Draft(BaseModel):
    topic: str = "looms"
    text: str = ""
    notes: Annotated[list[str], Append] = []
    scores: Annotated[dict[str, int], Merge] = {}
    rounds: int = 0


def begin(state: Draft):
    return {"notes": ["begun"], "scores": {"begin": 1}}


def check(state: Draft):
    return state.model_copy(
        update={
            "rounds": state.rounds + 1,
            "notes": [*state.notes, f"round {state.rounds + 1}"],
            "scores": {**state.scores, "check": state.rounds + 1},
        }
    )


def undo(state: Draft):
    return {"notes": ["undone"]}


def full() -> Workflow[Draft]:
    """Return a flow that has something of everything."""
    return (
        Workflow.create("Full", Draft, description="Everything there is.")
        .agent("Writer", prompt="You write.")
        .start_with(begin, lambda o: o.compensate(undo).with_retry(2, delay=1).with_timeout(60))
        .then(
            agent("Writer", prompt="Write about {topic}.", output=lambda s: s.text),
            lambda o: (
                o.with_context(
                    lambda c: c.from_state(lambda s: s.topic).from_literal("Cite.").from_history()
                )
                .validate_state(lambda s: s.topic != "", "a topic is needed")
                .on_failure(lambda p: p.then(undo, name="clean"))
            ),
        )
        .branch(lambda s: s.rounds > 5, {True: lambda p: p.complete()}, otherwise=lambda p: p)
        .repeat_until(lambda s: s.rounds >= 2, "Rounds", lambda b: b.then(check), 5)
        .fork(
            lambda p: p.then(begin, name="left"),
            lambda p: p.then(begin, name="right").on_failure(lambda q: q.then(undo, name="fix")),
        )
        .join(begin, name="join")
        .await_approval(
            "user:me",
            lambda a: (
                a.text("Publish {text}?")
                .option("yes")
                .option("no", rejects=True)
                .escalate_to("editor", timeout=60)
                .on_timeout(lambda p: p.complete())
            ),
        )
        .finally_(begin, name="publish")
        .on_failure(lambda p: p.then(undo, name="tell"))
        .compensate_on_cancel()
    )


SCRIPT = {"Writer": ["Looms are old."]}


async def played(host, name="Full"):
    run = await host.start(name, scope=LOCAL)
    await host.settled(run, scope=LOCAL)
    (asked,) = await host.requests(scope=LOCAL, run=run)
    await host.deliver(run, Answer(asked.id, {"decision": "yes"}), scope=LOCAL)
    await host.settled(run, scope=LOCAL)
    return await host.state(run, scope=LOCAL)


def test_code_and_files_give_the_same_spec_digest_and_run(tmp_path):
    flow = full()
    spec = flow.build()
    folder = tmp_path / "workflows" / "Full"
    flow.save(folder)
    package = read_package(folder)
    refuse_errors(package)
    assert package.spec == spec
    assert package.spec.flow == spec.flow
    assert package.digest == digest(spec, {})

    async def whole():
        async with open_flow(flow, model=ScriptedModel(SCRIPT)) as host:
            of_code = await played(host)
        async with open_flow(package.spec, model=ScriptedModel(SCRIPT)) as host:
            of_files = await played(host)
        return of_code, of_files

    of_code, of_files = waits(whole)
    assert of_code.outcome == "completed", of_code.reason
    assert of_code.variables == of_files.variables
    assert of_code.variables["notes"] == ["begun", "round 1", "round 2", *["begun"] * 4]


def test_a_flow_of_files_alone_runs_from_its_workspace(tmp_path):
    folder = tmp_path / "workflows" / "Sum"
    files = {
        "orchestrator.json": {"workflow_name": "Sum"},
        "agents.json": {"agents": []},
        "context_variables.json": {
            "context_variables": {
                "definitions": {"n": {"type": "int", "source": {"type": "derived", "default": 1}}}
            }
        },
        "flow.json": {
            "state": "tools.steps:Sum",
            "steps": [
                {
                    "kind": "repeat",
                    "name": "up",
                    "until": "n >= 4",
                    "steps": [
                        {
                            "kind": "step",
                            "name": "double",
                            "work": {"kind": "function", "function": "tools.steps:double"},
                        }
                    ],
                }
            ],
        },
    }
    (folder / "tools").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "tools" / "steps.py").write_text(
        "from pydantic import BaseModel\n\n\nclass Sum(BaseModel):\n    n: int = 1\n\n\n"
        "def double(state):\n    return {'n': state.n * 2}\n"
    )

    async def whole():
        async with await weft.open_host(tmp_path, journal=":memory:") as host:
            run = await host.start("Sum", scope=LOCAL, values={"n": 3}, model="sample")
            await host.settled(run, scope=LOCAL)
            return await host.state(run, scope=LOCAL)

    ended = waits(whole)
    assert (ended.outcome, ended.variables["n"]) == ("completed", 6), ended.reason


def test_a_spec_is_exported_to_json_and_imported_again():
    spec = full().build()
    text = spec.model_dump_json(by_alias=True)
    again = WorkflowSpec.model_validate_json(text)
    assert again == spec
    assert digest(again, {}) == digest(spec, {})


def test_a_flow_with_what_only_this_process_has_is_not_saved(tmp_path):
    flow = Workflow.create("F", Draft).start_with(lambda s: None, name="a")
    with pytest.raises(UsageError, match="only this process has"):
        flow.save(tmp_path / "F")
    assert not (tmp_path / "F").exists()


def test_another_flow_has_another_digest():
    one, other = full().build(), full().agent("Critic").build()
    assert digest(one, {}) != digest(other, {})


# -- what cannot run is refused before anything is begun


def test_a_flow_with_an_error_is_refused_by_build_with_all_findings():
    flow = (
        Workflow.create("F", Draft)
        .start_with(agent("Nobody", prompt="{nothing}", output="texts"))
        .repeat_until("rouns > 1", "Loop", lambda b: b.then(check))
    )
    with pytest.raises(CheckFailed) as caught:
        flow.build()
    assert len(caught.value.findings) >= 3
    assert all(finding.code and finding.message for finding in caught.value.findings)


def test_a_flow_of_files_with_an_error_does_not_start(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "workflows" / "Full"
    full().save(folder)
    written = json.loads((folder / "flow.json").read_text())
    written["steps"][1]["work"]["agent"] = "Nobody"
    (folder / "flow.json").write_text(json.dumps(written, indent=2))
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 1
    told = capsys.readouterr().out
    assert "NAME001" in told
    assert "flow.json:" in told

    async def whole():
        async with await weft.open_host(tmp_path, journal=":memory:") as host:
            with pytest.raises(CheckFailed):
                await host.start("Full", scope=LOCAL)
            return await host.runs(scope=LOCAL)

    assert waits(whole) == []


async def test_a_state_that_does_not_fit_is_refused_before_a_run():
    with pytest.raises(UsageError, match="rounds"):
        await run_flow(full(), {"rounds": "many"})


# -- patches


def test_patches_overwrite_append_or_merge_as_the_state_declares():
    async def whole():
        flow = (
            Workflow.create("F", Draft)
            .start_with(lambda s: {"notes": ["b"], "scores": {"y": 2}, "text": "new"}, name="patch")
            .then(check)
        )
        given = Draft(notes=["a"], scores={"x": 1}, text="old")
        return (await run_flow(flow, given)).output

    ended = waits(whole)
    assert ended == Draft(
        notes=["a", "b", "round 1"], scores={"x": 1, "y": 2, "check": 1}, text="new", rounds=1
    )


def test_the_same_function_may_do_several_steps_under_names():
    async def whole():
        flow = (
            Workflow.create("F", Draft)
            .start_with(begin)
            .then(begin, name="again")
            .then(lambda s: {"notes": [f"{len(s.notes)}"]}, name="inline")
            .finally_(begin, name="last")
        )
        return (await run_flow(flow)).output.notes

    assert waits(whole) == ["begun", "begun", "2", "begun"]


def test_a_written_package_is_read_again_as_it_was(tmp_path):
    spec = full().build()
    write_package(tmp_path / "Full", spec, {})
    assert read_package(tmp_path / "Full").spec == spec
