"""What a program says of a flow is what its files say."""

import json
from datetime import timedelta

import pytest

from support.flows import (
    Count,
    Critic,
    Draft,
    Gather,
    Letter,
    Mood,
    Publish,
    Verdict,
    check,
    undo,
    write,
)
from weft.errors import CheckFailed, UsageError
from weft.flow import ContextFormatOptions, Workflow, agent
from weft.packages.reader import read_package
from weft.packages.review import review
from weft.spec.flow import Flow
from weft.spec.providers import FilterConfig
from weft.spec.variables import StaticSource, Variable
from weft.spec.workflow import WorkflowSpec, digest

WRITE = {"kind": "function", "function": "support.flows:write"}
CHECK = {"kind": "function", "function": "support.flows:check"}


def begun() -> Workflow[Draft]:
    return Workflow.create("Review", Draft).start_with(write)


def flow_of(workflow: Workflow[Draft]) -> Flow:
    flow = workflow.build().flow
    assert flow is not None
    return flow


def nodes(workflow: Workflow[Draft]) -> list[dict]:
    """Return what follows the first step, as a file would say it."""
    data = flow_of(workflow).model_dump(mode="json", exclude_defaults=True)
    return [with_kinds(step) for step in data["steps"][1:]]


def with_kinds(data):
    """Add the kinds of works, which are left out where they are the default of their class."""
    if isinstance(data, dict):
        kind = {"function": "function", "agent": "agent"}
        added = next((kind[key] for key in kind if isinstance(data.get(key), str)), None)
        inner = {key: with_kinds(value) for key, value in data.items()}
        return {"kind": added, **inner} if added else inner
    return [with_kinds(entry) for entry in data] if isinstance(data, list) else data


def options_of(configure) -> dict:
    (step,) = nodes(begun().then(check, configure))
    assert step.pop("name") == "check"
    assert step.pop("work") == CHECK
    return step


def step(name: str, work=CHECK, **options) -> dict:
    return {"name": name, "work": work, **options}


# -- steps


def test_create_names_the_workflow_and_its_state():
    spec = Workflow.create("Review", Draft, description="Reviews drafts.").start_with(write).build()
    assert spec.orchestrator.workflow_name == "Review"
    assert spec.orchestrator.description == "Reviews drafts."
    assert spec.flow
    assert spec.flow.state == "support.flows:Draft"
    assert list(spec.variables) == list(Draft.model_fields)
    assert [model.name for model in spec.models] == ["Document"]


def test_start_with_then_and_finally_do_steps_in_order():
    flow = flow_of(begun().then(check).finally_(write, name="last"))
    assert [step.name for step in flow.steps] == ["write", "check"]
    assert flow.finally_
    assert flow.finally_.name == "last"


def test_one_step_may_occur_several_times_under_different_names():
    flow = flow_of(
        Workflow.create("Review", Draft)
        .start_with(write, lambda o: o.with_retry(2), name="first")
        .then(write, name="second")
        .fork(lambda p: p.then(write, name="a"), lambda p: p.then(write, name="b"))
        .join(write, lambda o: o.with_timeout(3), name="joined")
        .finally_(write, lambda o: o.with_timeout(3), name="last")
    )
    assert [step.name for step in flow.steps] == ["first", "second", "fork_1"]


def test_functions_classes_and_objects_are_steps():
    works = [node["work"] for node in nodes(begun().then(Publish).then(Count(3)).then(check))]
    assert works == [
        {"kind": "function", "function": "support.flows:Publish"},
        {"kind": "function", "function": "support.flows:Count", "options": {"by": 3}},
        CHECK,
    ]


def test_objects_of_this_process_are_referred_to_by_a_local_name():
    found = nodes(begun().then(lambda state: None, name="here"))
    assert found[0]["work"]["function"].startswith("local:lambda_")


def test_an_agent_step_declares_its_agent():
    spec = begun().then(Critic).then(Critic(), name="again").build()
    (declared,) = spec.agents
    assert (declared.agent_name, declared.description) == ("Critic", "Judges drafts.")
    assert declared.model == "sample"
    assert [(tool.agent, tool.file, tool.function) for tool in spec.tools] == [
        ("Critic", "python:support.flows", "look_up")
    ]
    assert [(entry.agent, entry.model) for entry in spec.registry] == [("Critic", "Verdict")]
    assert [model.name for model in spec.models] == ["Document", "Verdict"]
    assert spec.flow
    works = [step.work.model_dump(exclude_defaults=True) for step in spec.flow.steps[1:]]
    assert works == [{"agent": "Critic", "step": "support.flows:Critic"}] * 2


def test_agents_of_the_same_name_and_different_models_differ():
    critic = Critic()
    critic.model = "other"
    with pytest.raises(CheckFailed) as raised:
        begun().then(Critic).then(critic, name="again").build()
    assert {finding.code for finding in raised.value.findings} == {"NAME002"}


def test_a_declared_agent_does_a_step():
    workflow = begun().agent(
        "Editor",
        prompt="You shorten.",
        description="Shortens.",
        model="sample",
        tools=[undo],
        output_type=Verdict,
    )
    asked = agent("Editor", prompt="Shorten {topic}.", output=lambda s: s.document)
    workflow = workflow.then(asked).then(asked, name="again")
    spec = workflow.build()
    (editor,) = spec.agents
    assert [section.content for section in editor.prompt_sections] == ["You shorten."]
    assert (editor.description, editor.model) == ("Shortens.", "sample")
    assert [tool.function for tool in spec.tools] == ["undo"]
    assert [item.model for item in spec.registry] == ["Verdict"]
    work = {
        "kind": "agent",
        "agent": "Editor",
        "prompt": "Shorten {topic}.",
        "output": "document",
    }
    assert nodes(workflow) == [step("Editor", work), step("again", work)]


def test_an_agent_may_be_declared_by_its_name_alone():
    spec = begun().agent("Editor").then(agent("Editor", output="topic")).build()
    assert [agent.agent_name for agent in spec.agents] == ["Editor"]
    assert (spec.tools, spec.registry) == ((), ())


def test_an_agent_is_shown_what_its_prompt_inserts():
    workflow = begun().agent("Editor", prompt="Shorten {topic}. {kind}, {topic}.")
    spec = workflow.then(agent("Editor", output=lambda s: s.topic)).build()
    assert spec.exposure == {"Editor": ("topic", "kind")}


# -- order


def test_branch_takes_one_of_several_paths():
    workflow = begun().branch(
        lambda s: s.kind,
        {"bill": lambda p: p.then(check).complete(), "offer": lambda p: p},
        otherwise=lambda p: p.then(check, name="other"),
        name="by_kind",
    )
    assert nodes(workflow) == [
        {
            "name": "by_kind",
            "on": "kind",
            "cases": [
                {"value": "bill", "path": {"steps": [step("check")], "ends": True}},
                {"value": "offer", "path": {}},
            ],
            "otherwise": {"steps": [step("other")]},
        }
    ]


def test_branch_by_a_condition_and_by_an_enum():
    found = nodes(
        begun()
        .branch(lambda s: s.total > 3, {True: lambda p: p, False: lambda p: p})
        .branch("mood", {Mood.GOOD: lambda p: p, Mood.BAD: lambda p: p})
    )
    assert [(entry["name"], entry["on"]) for entry in found] == [
        ("branch_1", "total > 3"),
        ("branch_2", "mood"),
    ]
    assert [[case["value"] for case in entry["cases"]] for entry in found] == [
        [True, False],
        ["good", "bad"],
    ]


def test_fork_goes_side_by_side_and_join_follows():
    workflow = (
        begun()
        .fork(
            lambda p: p.then(check, name="left").on_failure(lambda q: q.then(undo)),
            lambda p: p.then(check, name="right").then(check, name="more"),
            name="both",
        )
        .join(check, lambda o: o.with_timeout(3))
    )
    failed = {"kind": "function", "function": "support.flows:undo"}
    assert nodes(workflow) == [
        {
            "name": "both",
            "paths": [
                {
                    "name": "left",
                    "steps": [step("left")],
                    "on_failure": {"steps": [step("undo", failed)]},
                },
                {"name": "right", "steps": [step("right"), step("more")]},
            ],
            "join": step("check", timeout_seconds=3.0),
        }
    ]


def test_parts_without_names_are_numbered_from_the_outside_in():
    def inner(path):
        return (
            path.then(check, name="c")
            .fork(lambda p: p.then(check, name="d"), lambda p: p.then(check, name="e"))
            .join(check, name="f")
        )

    (outer,) = nodes(begun().fork(inner, lambda p: p.then(check, name="b")).join(check))
    assert outer["name"] == "fork_1"
    assert outer["paths"][0]["steps"][1]["name"] == "fork_2"


def test_repeat_until_does_steps_again():
    workflow = begun().repeat_until(
        lambda s: s.document.score > 3, "improve", lambda p: p.then(check), max_iterations=3
    )
    assert nodes(workflow) == [
        {
            "name": "improve",
            "until": "document.score > 3",
            "steps": [step("check")],
            "max_iterations": 3,
        }
    ]


def test_on_failure_of_the_workflow_and_compensate_on_cancel():
    flow = flow_of(
        begun()
        .then(check, lambda o: o.compensate(undo))
        .on_failure(lambda p: p.then(write, name="tell"))
        .compensate_on_cancel()
    )
    assert flow.on_failure
    assert [step.name for step in flow.on_failure.steps] == ["tell"]
    assert flow.compensate_on_cancel


# -- options of steps


def test_retry_and_timeout():
    assert options_of(lambda o: o.with_retry(3)) == {"retry": {"attempts": 3}}
    assert options_of(lambda o: o.with_retry(2, delay=timedelta(minutes=1)).with_timeout(90)) == {
        "retry": {"attempts": 2, "delay_seconds": 60.0},
        "timeout_seconds": 90.0,
    }


def test_confidence_ends_or_rejoins():
    assert options_of(
        lambda o: o.require_confidence(0.8).on_low_confidence(lambda p: p.then(undo))
    )["confidence"]["path"]["ends"]
    assert options_of(
        lambda o: o.require_confidence(0.8).on_low_confidence(lambda p: p.rejoin_main_flow())
    ) == {"confidence": {"minimum": 0.8, "path": {}}}


def test_compensate_on_failure_and_validate_state():
    found = options_of(
        lambda o: (
            o.compensate(undo)
            .on_failure(lambda p: p.then(write, name="tell"))
            .validate_state(lambda s: s.topic != "", "a topic is needed")
            .validate_state("total >= 0")
        )
    )
    assert found == {
        "validate": [
            {"condition": 'topic != ""', "message": "a topic is needed"},
            {"condition": "total >= 0"},
        ],
        "compensate": {"kind": "function", "function": "support.flows:undo"},
        "on_failure": {"steps": [step("tell", WRITE)]},
    }


class Library:
    @classmethod
    def collection_name(cls) -> str:
        return "library"


def test_with_context_shows_pieces_in_order():
    rules = Variable.model_validate({"type": "str", "source": {"type": "static", "value": "x"}})
    workflow = (
        begun()
        .variables({"rules": rules})
        .then(
            check,
            lambda o: o.with_context(
                lambda c: (
                    c.from_state(lambda s: s.document.summary)
                    .from_retrieval(
                        Library,
                        lambda r: (
                            r.query(lambda s: s.topic)
                            .top_k(3)
                            .min_relevance(0.5)
                            .filter("kind", lambda s: s.kind)
                            .filter("year", 2026)
                        ),
                    )
                    .from_retrieval("Archive", lambda r: r.query("old letters"))
                    .from_board("NewsDesk", filters=FilterConfig(types=("Story",)), limit=5)
                    .from_variable("rules")
                    .from_literal("Be short.", max_tokens=10)
                    .from_history(max_messages=3, max_tokens=100)
                    .formatted(ContextFormatOptions(headers=True))
                )
            ),
        )
    )
    spec = workflow.build()
    assert isinstance(spec.variables["rules"].source, StaticSource)
    (found,) = nodes(workflow)
    assert found["context"] == {
        "sources": [
            {"path": "document.summary"},
            {
                "collection": "library",
                "query_path": "topic",
                "top_k": 3,
                "min_relevance": 0.5,
                "filters": [{"key": "kind", "path": "kind"}, {"key": "year", "value": 2026}],
            },
            {"collection": "Archive", "query": "old letters"},
            {"board": "NewsDesk", "filters": {"types": ["Story"]}, "limit": 5},
            {"name": "rules"},
            {"text": "Be short.", "max_tokens": 10},
            {"max_messages": 3, "max_tokens": 100},
        ],
        "format": {"headers": True},
    }


def test_a_context_may_be_assembled_by_an_object():
    assert options_of(lambda o: o.with_context(lambda c: c.assembled_by(Gather(5)))) == {
        "context": {"assembler": "support.flows:Gather", "options": {"most": 5}}
    }


# -- approvals


def test_await_approval_asks_a_person():
    workflow = begun().await_approval(
        "manager",
        lambda a: (
            a.text("Pay {total}?")
            .option("pay")
            .option("ask again")
            .option("refuse", rejects=True)
            .default("refuse")
            .timeout(timedelta(hours=2))
            .escalate_to("director", timeout=60)
            .escalate_to("user:ada")
            .on_timeout(lambda p: p.then(write, name="late"))
            .on_rejection(lambda p: p.complete())
            .into(lambda s: s.decision)
        ),
        name="pay",
    )
    assert nodes(workflow) == [
        {
            "name": "pay",
            "approver": "role:manager",
            "text": "Pay {total}?",
            "options": [
                {"name": "pay"},
                {"name": "ask again"},
                {"name": "refuse", "rejects": True},
            ],
            "default": "refuse",
            "timeout_seconds": 7200.0,
            "escalate": [
                {"approver": "role:director", "timeout_seconds": 60.0},
                {"approver": "user:ada"},
            ],
            "on_timeout": {"steps": [step("late", WRITE)]},
            "on_rejection": {"ends": True},
            "output": "decision",
        }
    ]


def test_an_approval_may_be_plain():
    assert nodes(begun().await_approval("group:board")) == [
        {"name": "approval_1", "approver": "group:board"}
    ]


# -- what is built


def test_build_raises_all_errors_at_once_and_keeps_warnings():
    workflow = begun().branch("kid", {"bill": lambda p: p})
    workflow.then(check, lambda o: o.require_confidence(0.5).validate_state("scre > 3"))
    with pytest.raises(CheckFailed, match="the workflow Review has 2 errors") as raised:
        workflow.build()
    assert [finding.code for finding in raised.value.findings] == ["COND002", "COND002"]
    assert [finding.code for finding in workflow.findings] == ["FLOW013"]
    assert all("COND002" in note for note in raised.value.__notes__)


def test_an_unknown_field_is_reported_with_a_suggestion():
    with pytest.raises(CheckFailed) as raised:
        begun().branch("kid", {"bill": lambda p: p}).repeat_until(
            lambda s: s.document.scre > 3, "improve", lambda p: p.then(check)
        ).build()
    first, second = raised.value.findings
    assert (first.code, second.code) == ("COND002", "COND002")
    assert first.hint == ('did you mean "kind"?',)
    assert second.hint == ('did you mean "score"?',)


def test_flow_without_steps_is_refused():
    with pytest.raises(CheckFailed, match="FLOW003 the flow has no steps"):
        Workflow.create("Review", Draft).build()


def test_message_has_the_first_three_findings():
    flow = Workflow.create("Review", Draft).start_with(write)
    for number in range(5):
        flow.then(write, name=f"again_{number}")
        flow.then(agent(f"Nobody{number}"))
    with pytest.raises(CheckFailed) as caught:
        flow.build()
    text = str(caught.value)
    assert text.startswith("the workflow Review has 5 errors and cannot run: ")
    assert text.count("flow.steps.") == 3
    assert text.endswith("(and 2 more)")
    assert caught.value.message == "the workflow Review has 5 errors and cannot run"


def everything() -> Workflow[Draft]:
    """A flow with one of everything that files can say."""
    return (
        Workflow.create("Review", Draft, description="Reviews drafts.")
        .start_with(write, lambda o: o.with_retry(3, delay=2).with_timeout(60))
        .then(
            Critic,
            lambda o: (
                o.with_context(
                    lambda c: (
                        c.from_state(lambda s: s.topic)
                        .from_retrieval(
                            "Library", lambda r: r.query(lambda s: s.topic).filter("a", 1)
                        )
                        .from_board("NewsDesk")
                        .from_literal("Be short.")
                    )
                )
                .require_confidence(0.7)
                .on_low_confidence(lambda p: p.then(check, name="look").rejoin_main_flow())
                .compensate(undo)
                .validate_state(lambda s: (s.topic != "") & ~s.paid)
                .on_failure(lambda p: p.then(write, name="tell"))
            ),
        )
        .branch(lambda s: s.kind, {"bill": lambda p: p.then(Count(3))}, otherwise=lambda p: p)
        .fork(
            lambda p: p.then(check, name="left").on_failure(lambda q: q.then(undo)),
            lambda p: p.then(Publish),
        )
        .join(check)
        .repeat_until("document.score > 3", "improve", lambda p: p.then(write, name="again"))
        .await_approval("manager", lambda a: a.text("Go?").into(lambda s: s.decision))
        .on_failure(lambda p: p.then(write, name="sorry"))
        .compensate_on_cancel()
        .finally_(write, name="end")
    )


def test_code_and_files_say_the_same(tmp_path):
    workflow = everything()
    spec = workflow.build()
    assert workflow.findings == ()
    workflow.save(tmp_path / "Review")
    package = read_package(tmp_path / "Review")
    assert package.spec == spec
    assert digest(package.spec, {}) == digest(spec, {})
    assert review(tmp_path / "Review").findings == ()


def test_a_spec_survives_json():
    spec = everything().build()
    assert WorkflowSpec.model_validate_json(spec.model_dump_json()) == spec
    assert json.loads(spec.model_dump_json())["flow"]["finally"]["name"] == "end"


def test_the_same_flow_has_the_same_digest_each_time():
    assert digest(everything().build(), {}) == digest(everything().build(), {})
    assert digest(begun().build(), {}) != digest(everything().build(), {})


def test_save_refuses_what_only_this_process_has(tmp_path):
    workflow = begun().then(lambda state: None, name="here")
    with pytest.raises(UsageError, match="only this process has local:lambda_"):
        workflow.save(tmp_path / "Review")
    assert not (tmp_path / "Review").exists()


BY_HAND = {
    "orchestrator.json": {"workflow_name": "Post"},
    "agents.json": {"agents": [{"agent_name": "Writer"}]},
    "context_variables.json": {
        "context_variables": {
            "definitions": {
                "text": {"type": "str", "source": {"type": "derived", "default": ""}},
                "tries": {"type": "int", "source": {"type": "derived", "default": 0}},
            }
        }
    },
    "flow.json": {
        "state": "support.flows:Letter",
        "steps": [
            {
                "kind": "step",
                "name": "Writer",
                "work": {"kind": "agent", "agent": "Writer", "prompt": "Write.", "output": "text"},
                "retry": {"attempts": 3},
            },
            {
                "kind": "branch",
                "name": "branch_1",
                "on": 'text == "" and tries < 3',
                "cases": [
                    {"value": True, "path": {"ends": True}},
                    {"value": False, "path": {"steps": []}},
                ],
            },
        ],
    },
}


def test_files_written_by_hand_have_the_digest_of_the_same_flow_in_code(tmp_path):
    for name, data in BY_HAND.items():
        (tmp_path / name).write_text(json.dumps(data))
    workflow = (
        Workflow.create("Post", Letter)
        .agent("Writer")
        .start_with(
            agent("Writer", prompt="Write.", output=lambda s: s.text), lambda o: o.with_retry(3)
        )
        .branch(
            lambda s: (s.text == "") & (s.tries < 3),
            {True: lambda p: p.complete(), False: lambda p: p},
        )
    )
    assert digest(read_package(tmp_path).spec, {}) == digest(workflow.build(), {})
