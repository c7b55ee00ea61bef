"""Rules about flows: what each says, and what it leaves alone."""

from dataclasses import replace
from typing import Any

import pytest

from weft.check.rule import rules_of
from weft.check.rules import flow, flow_state
from weft.check.run import check
from weft.check.subject import Hit, Subject
from weft.spec.workflow import WorkflowSpec

OF_FLOWS = {it.code: it for it in rules_of(flow, flow_state)}
WORK = {"kind": "function", "function": "installed.steps:write"}
ASKED = {"kind": "agent", "agent": "Writer", "output": "text"}
MODELS = [
    {"name": "Letter", "fields": {"title": {"type": "str"}, "pages": {"type": "int"}}},
    {"name": "Parcel", "fields": {"weight": {"type": "float"}, "title": {"type": "str"}}},
    {"name": "Reply", "fields": {"text": {"type": "str"}}},
    {"name": "Strange", "fields": {"other": {"type": "str"}}},
]
STATE = {
    "text": "str",
    "done": "bool",
    "size": "int",
    "kind": 'literal["letter", "parcel"]',
    "letter": "optional[Letter]",
    "either": "Letter | Parcel",
    "maybe": "optional[Letter | str]",
    "words": "list[str]",
    "marks": "dict[int]",
    "open": "any",
    "lost": "Gone",
}


def derived(type_: str) -> dict[str, Any]:
    return {"type": type_, "source": {"type": "derived"}}


def step(name: str = "write", work: dict[str, Any] = WORK, **fields: Any) -> dict[str, Any]:
    return {"kind": "step", "name": name, "work": work, **fields}


def branch(on: str, *values: Any, **fields: Any) -> dict[str, Any]:
    cases = [{"value": value, "path": {}} for value in values]
    return {"kind": "branch", "name": "which", "on": on, "cases": cases, **fields}


def approval(**fields: Any) -> dict[str, Any]:
    return {"kind": "approval", "name": "pay", "approver": "role:boss", **fields}


def reading(*sources: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return step("read", context={"sources": list(sources), **fields})


def workflow(
    *steps: dict[str, Any], folder: str = "", parts: dict[str, Any] | None = None, **fields: Any
) -> Subject:
    """A flow over the state, with the agent Writer."""
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Post"},
            "agents": [{"agent_name": "Writer"}],
            "variables": {
                **{name: derived(type_) for name, type_ in STATE.items()},
                "rate": {"type": "float", "source": {"type": "static", "value": 1}},
            },
            "models": MODELS,
            "flow": {"steps": list(steps), **fields},
            **(parts or {}),
        }
    )
    return Subject(spec, folder=folder)


def hits(code: str, subject: Subject) -> list[Hit]:
    return list(OF_FLOWS[code].check(subject))


def only(code: str, subject: Subject) -> Hit:
    (hit,) = hits(code, subject)
    return hit


CONVERSATION = Subject(
    WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Talk", "initial_agent": "Writer"},
            "agents": [{"agent_name": "Writer"}],
        }
    )
)


@pytest.mark.parametrize("code", OF_FLOWS)
def test_rules_of_flows_say_nothing_of_conversations(code):
    assert hits(code, CONVERSATION) == []


@pytest.mark.parametrize("code", ["FLOW001", "FLOW002", "FLOW003", "FLOW030"])
def test_of_a_flow_beside_a_board_only_the_board_speaks(code):
    both = workflow(parts={"board": {"artifacts": [], "agents": []}})
    assert hits(code, both) == []
    assert "BOARD001" in {it.code for it in check(both)}


def test_rules_about_handoffs_say_nothing_of_flows():
    said = {it.code for it in check(workflow(step(work=ASKED)))}
    assert not [code for code in said if code.startswith("HAND")]


def test_FLOW002_a_workflow_without_a_name():
    parts = {"orchestrator": {"workflow_name": "  "}}
    assert only("FLOW002", workflow(step(), parts=parts)).path == ("orchestrator", "workflow_name")


def test_FLOW002_a_slash_is_told_once_of_a_path_that_is_called_like_its_first_step():
    paths = [{"name": "a/b", "steps": [step("a/b")]}, {"name": "c/d", "steps": []}]
    fork = {"kind": "fork", "name": "both", "paths": paths, "join": step("join")}
    found = hits("FLOW002", workflow(fork))
    assert [it.path[-3:] for it in found] == [("steps", 0, "name"), ("paths", 1, "name")]


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e20, 31_536_001])
def test_FLOW014_and_FLOW015_times_are_numbers_of_at_most_a_year(seconds):
    waits = step(retry={"attempts": 2, "delay_seconds": seconds})
    assert only("FLOW014", workflow(waits)).path[-1] == "delay_seconds"
    for node in (
        step(timeout_seconds=seconds),
        approval(timeout_seconds=seconds),
        approval(escalate=[{"approver": "user:ada", "timeout_seconds": seconds}]),
    ):
        assert only("FLOW015", workflow(node)).path[-1] == "timeout_seconds"


def test_FLOW014_and_FLOW015_the_most_that_is_allowed():
    most = step(retry={"attempts": 1000, "delay_seconds": 31_536_000}, timeout_seconds=31_536_000)
    assert hits("FLOW014", workflow(most)) == hits("FLOW015", workflow(most)) == []
    assert only("FLOW014", workflow(step(retry={"attempts": 1001}))).path[-1] == "attempts"


def forked(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A fork, one of whose paths has the steps."""
    paths = [{"name": "a", "steps": list(steps), **fields}]
    return {"kind": "fork", "name": "both", "paths": paths, "join": step("join")}


UNDONE = step("undone", compensate=WORK)


@pytest.mark.parametrize(
    "subject",
    [
        workflow(step(on_failure={"steps": [UNDONE]})),
        workflow(step(on_failure={"steps": [branch("done", otherwise={"steps": [UNDONE]})]})),
        workflow(forked(step(on_failure={"steps": [UNDONE]}))),
        workflow(step(), on_failure={"steps": [UNDONE]}),
        workflow(step(), on_failure={"steps": [forked(step(on_failure={"steps": [UNDONE]}))]}),
    ],
)
def test_FLOW016_nothing_of_a_failure_path_is_undone(subject):
    assert "nothing of that is undone" in only("FLOW016", subject).message


@pytest.mark.parametrize(
    "subject",
    [
        workflow(forked(step(), on_failure={"steps": [UNDONE]})),
        workflow(step(), on_failure={"steps": [forked(UNDONE)]}),
        workflow(step(on_failure={"steps": [forked(step("b"), on_failure={"steps": [UNDONE]})]})),
    ],
)
def test_FLOW016_paths_of_forks_undo_their_own_steps(subject):
    assert hits("FLOW016", subject) == []


def test_EXPO011_texts_of_steps_fit_too():
    text = {"kind": "literal", "text": "x" * 41, "max_tokens": 10}
    (found,) = [it for it in check(workflow(reading(text))) if it.code == "EXPO011"]
    assert "the context of read takes about 11 tokens and may take 10" in found.message
    fits = check(workflow(reading({**text, "max_tokens": 11})))
    assert "EXPO011" not in {it.code for it in fits}


def test_FLOW028_a_template_shows_the_context():
    source = {"kind": "state", "path": "text"}
    found = only("FLOW028", workflow(reading(source, format={"template": "Hello"})))
    assert found.path[-2:] == ("format", "template")
    for shown in ({"template": "See {context}!"}, {}):
        assert hits("FLOW028", workflow(step(), reading(source, format=shown))) == []


def test_FLOW005_names_inside_of_everything():
    inside = {"steps": [step("write")]}
    nested = [
        branch("done", True, otherwise=inside),
        approval(on_timeout=inside),
        step("x", confidence={"minimum": 0.5, "path": inside}),
    ]
    for node in nested:
        assert '"write"' in only("FLOW005", workflow(step(), node)).message
    last = workflow(step(), **{"finally": step("write"), "on_failure": inside})
    assert [it.path for it in hits("FLOW005", last)] == [
        ("flow", "finally", "name"),
        ("flow", "on_failure", "steps", 0, "name"),
    ]


def test_FLOW007_a_fork_with_one_path_and_with_none():
    for paths, told in (([], "no paths"), ([{"name": "a", "steps": [step()]}], "one path")):
        fork = {"kind": "fork", "name": "both", "paths": paths, "join": step("join")}
        assert told in only("FLOW007", workflow(fork)).message


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (step(on_failure={"ends": True}), "after a failure path"),
        (step(retry={"attempts": 1}), "tried once"),
        (
            reading({"kind": "state", "path": "text"}, assembler="a.b:C"),
            "an assembler puts the context",
        ),
        (reading(options={"a": 1}), "no assembler that gets them"),
        (reading(), "has no sources"),
        (reading({"kind": "history"}), "is done by a function"),
        (step(work={**ASKED, "options": {"a": 1}}), "no class that is made"),
        (step(work={**ASKED, "step": "a.b:C"}), "applies the reply"),
        (
            step(work={"kind": "agent", "agent": "Writer", "step": "a.b:C", "prompt": "x"}),
            "prompts",
        ),
        (approval(options=[{"name": "yes"}], on_rejection={}), "no answer to pay rejects"),
        (approval(default="reject", on_timeout={}), '"reject" counts as the answer'),
    ],
)
def test_FLOW016_options_without_effect(node, told):
    assert told in only("FLOW016", workflow(node)).message


def test_FLOW016_nothing_to_undo_when_stopped():
    found = only("FLOW016", workflow(step(), compensate_on_cancel=True))
    assert found.path == ("flow", "compensate_on_cancel")
    assert hits("FLOW016", workflow(step(compensate=WORK), compensate_on_cancel=True)) == []


def test_FLOW016_is_silent_where_an_option_has_an_effect():
    plain = workflow(
        step(retry={"attempts": 2}, on_failure={}),
        step("talk", ASKED, context={"sources": [{"kind": "history"}]}),
        reading(assembler="a.b:C", options={"a": 1}, format={"headers": True}),
        step("ask", {"kind": "agent", "agent": "Writer", "step": "a.b:C", "options": {"a": 1}}),
        approval(options=[], on_rejection={}, on_timeout={}),
    )
    assert hits("FLOW016", plain) == []


def test_FLOW017_ends_inside_of_a_fork():
    inner = branch("done", True, False)
    inner["cases"][0]["path"] = {"ends": True}
    path = {"name": "a", "steps": [inner, step(on_failure={"ends": True})]}
    fork = {"kind": "fork", "name": "both", "paths": [path], "join": step("join")}
    assert only("FLOW017", workflow(fork)).path[-4:] == (0, "cases", 0, "path")
    assert hits("FLOW017", workflow(inner)) == []


@pytest.mark.parametrize(
    "name",
    [
        *("text", "letter.title", "either.weight", "either.title", "maybe.pages", "marks.any"),
        *("open.any.thing", "lost.any", "rate", "user_id"),
    ],
)
def test_FLOW019_fields_that_are_there(name):
    assert hits("FLOW019", workflow(branch(name, 1))) == []


@pytest.mark.parametrize(
    ("name", "step_", "hint"),
    [
        ("txt", "txt", 'did you mean "text"?'),
        ("zzz", "zzz", "its fields are text, done"),
        ("letter.titel", "titel", 'did you mean "title"?'),
        ("maybe.pags", "pags", 'did you mean "pages"?'),
        ("either.wight", "wight", 'did you mean "weight"?'),
        ("letter.title.x", "x", "it has no fields"),
        ("words.first", "first", "it has no fields"),
    ],
)
def test_FLOW019_fields_that_are_not_there(name, step_, hint):
    found = only("FLOW019", workflow(branch(name, 1)))
    assert f'there is no "{step_}"' in found.message
    assert found.hint[0].startswith(hint)
    assert found.offset == name.index(step_)


def test_FLOW019_what_is_set_is_a_whole_field_of_the_state():
    for name, told in (("letter.title", "only whole fields can be set"), ("rate", "no field")):
        assert told in only("FLOW019", workflow(step(work={**ASKED, "output": name}))).message
        assert told in only("FLOW019", workflow(approval(output=name))).message
    assert (
        "no field" in only("FLOW019", workflow(reading({"kind": "state", "path": "rate"}))).message
    )


def test_FLOW019_parts_of_values_are_not_inserted():
    text = "{letter.title} {{letter.title}} {other.title} {text}"
    found = only("FLOW019", workflow(approval(text=text)))
    assert (found.offset, found.length) == (1, len("letter.title"))


def test_conditions_that_cannot_be_read_are_told_once():
    broken = workflow(branch("kind =", "letter"), step(validate=[{"condition": "= 3"}]))
    assert len(hits("FLOW020", broken)) == 2
    for code in ("FLOW019", "FLOW021", "FLOW023", "FLOW024"):
        assert hits(code, broken) == []


def test_FLOW021_comparisons_of_parts():
    assert "letter.pages" in only("FLOW021", workflow(branch("letter.pages == 'x'", True))).message
    assert hits("FLOW021", workflow(branch("letter.pages == 3 and gone == 3", True))) == []


def test_FLOW022_a_branch_without_cases_and_with_two_of_one():
    assert "no cases" in only("FLOW022", workflow(branch("kind"))).message
    assert "two cases for 1" in only("FLOW022", workflow(branch("size", 1, 1.0, True))).message


def test_FLOW023_what_is_never_so():
    assert hits("FLOW023", workflow(branch("kind", "letter", None))) == []
    assert only("FLOW023", workflow(branch("kind", "lettr"))).hint == ('did you mean "letter"?',)
    assert "never 3" in only("FLOW023", workflow(branch("size > 3", 3))).message
    assert only("FLOW023", workflow(branch("size", ["a"]))).hint[0].startswith("write a value")
    assert hits("FLOW023", workflow(branch("gone", "x"), branch("lost", "x"))) == []


def test_FLOW024_what_has_no_case():
    assert "no case for false" in only("FLOW024", workflow(branch("size > 3", True))).message
    assert 'for "parcel"' in only("FLOW024", workflow(branch("kind", "letter"))).message
    for whole in (
        branch("kind", "letter", "parcel"),
        branch("kind", "letter", otherwise={}),
        branch("kind"),
        branch("kind", "lettr"),
        branch("text", "a"),
    ):
        assert hits("FLOW024", workflow(whole)) == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"options": []}, "has no options"),
        ({"options": [{"name": "no", "rejects": True}]}, "every answer to pay rejects it"),
        ({"options": [{"name": "a"}, {"name": "a"}]}, "two options called a"),
        ({"default": "aprove"}, '"aprove", is none of its options'),
        ({"options": [{"name": "a"}], "default": "zzz"}, '"zzz", is none of its options'),
    ],
)
def test_FLOW025_approvals_that_nobody_can_give(fields, told):
    assert told in only("FLOW025", workflow(approval(**fields))).message


def test_FLOW026_escalations_ask_somebody_too():
    asked = approval(escalate=[{"approver": "user:ada"}, {"approver": "bob"}])
    assert only("FLOW026", workflow(asked)).path[-3:] == ("escalate", 1, "approver")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "has no query"),
        ({"query": "  "}, "has no query"),
        ({"query": "a", "query_path": "text"}, "has two queries"),
        ({"query": "a", "filters": [{"key": "x"}, {"key": "x", "value": 1}]}, "filters x twice"),
    ],
)
def test_FLOW027_queries(fields, told):
    source = {"kind": "retrieval", "collection": "Library", **fields}
    assert told in only("FLOW027", workflow(reading(source))).message


def test_FLOW028_variables_of_contexts():
    here = reading({"kind": "variable", "name": "rate"}, {"kind": "board", "board": "News"})
    assert hits("FLOW028", workflow(here)) == []
    found = only("FLOW028", workflow(reading({"kind": "variable", "name": "rat"})))
    assert found.hint == ('did you mean "rate"?',)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (None, "it is free text"),
        ("Strange", "no field of Strange is one of the state"),
        ("Reply", None),
        ("Missing", None),
    ],
)
def test_FLOW029_replies_that_change_nothing(model, told):
    bound = {"registry": [{"agent": "Writer", "model": model}]}
    asked = step(work={"kind": "agent", "agent": "Writer"})
    found = [it.message for it in hits("FLOW029", workflow(asked, parts=bound))]
    assert bool(found) == (told is not None)
    assert all(str(told) in message for message in found)


def test_FLOW029_is_silent_of_unknown_agents_and_of_classes():
    unknown = step(work={"kind": "agent", "agent": "Wirter"})
    own = step("own", {"kind": "agent", "agent": "Writer", "step": "a.b:C"})
    assert hits("FLOW029", workflow(unknown, own)) == []


def test_FLOW030_a_misspelt_agent_does_its_step():
    assert hits("FLOW030", workflow(step(work={**ASKED, "agent": "Wirter"}))) == []
    assert only("FLOW030", workflow(step())).path == ("agents", 0, "agent_name")


def test_FLOW031_code_of_the_package():
    missing = workflow(step(work={"kind": "function", "function": "tools.a:f"}), folder="Post")
    assert "cannot be found" in only("FLOW031", missing).message
    assert hits("FLOW031", workflow(step(), folder="Post")) == []


def test_FLOW031_a_module_that_is_nowhere_here_is_warned_of():
    code = workflow(step(work={"kind": "function", "function": "expense.a:f"}), folder="Post")
    assert hits("FLOW031", code) == []  # Nobody has looked.
    assert hits("FLOW031", replace(code, is_installed=lambda _: True)) == []
    found = only("FLOW031", replace(code, is_installed=lambda _: False))
    assert found.severity == "warning"
    assert found.message.endswith("expense.a is no file of the package, and is not installed here")
    assert "copy expense/a.py into the package" in found.hint[0]


def test_FLOW032_local_objects_are_for_programs():
    local = {"kind": "function", "function": "local:f"}
    assert hits("FLOW032", workflow(step(work=local))) == []
    found = hits("FLOW032", workflow(step(work=local, compensate=local), folder="Post"))
    assert len(found) == 2


def test_state_of_a_flow_is_set_and_read_by_steps():
    said = {it.code for it in check(workflow(reading({"kind": "variable", "name": "rate"})))}
    assert not said & {"VAR011", "VAR012"}
    unread = [it for it in check(workflow(step())) if it.code == "VAR012"]
    assert [it.message.partition(":")[0] for it in unread] == ["nothing reads rate"]


@pytest.mark.parametrize(
    "node",
    [
        branch("rate > 3", True),
        approval(text="At {rate}?"),
        step(work={**ASKED, "prompt": "At {rate}."}),
    ],
)
def test_what_a_flow_asks_for_is_read(node):
    assert "VAR012" not in {it.code for it in check(workflow(node))}


def test_broken_conditions_read_nothing():
    assert "VAR012" in {it.code for it in check(workflow(branch("rate =", True)))}


def test_FLOW016_a_failure_path_cannot_complete_the_run_from_deep_inside():
    inner = branch("done", True, False)
    inner["cases"][1]["path"] = {"ends": True}
    found = only("FLOW016", workflow(step(on_failure={"steps": [inner]})))
    assert found.path[-4:] == ("cases", 1, "path", "ends")


@pytest.mark.parametrize(
    ("model", "output", "told"),
    [
        (None, "text", None),
        (None, "open", None),
        (None, "lost", None),
        (None, "gone", None),
        (None, "size", "replies with text, and size is int"),
        (None, "words", "and words is list[str]"),
        ("Letter", "letter", None),
        ("Letter", "marks", None),
        ("Letter", "text", "replies with a Letter, and text is str"),
    ],
)
def test_FLOW035_replies_fit_their_fields(model, output, told):
    bound = {"registry": [{"agent": "Writer", "model": model}]}
    asked = step(work={"kind": "agent", "agent": "Writer", "output": output})
    found = [it.message for it in hits("FLOW035", workflow(asked, parts=bound))]
    assert [told in message for message in found] == ([True] if told else [])


@pytest.mark.parametrize("output", ["text", "open", "gone", None])
def test_FLOW035_options_fit_their_fields(output):
    assert hits("FLOW035", workflow(approval(output=output))) == []


def test_FLOW035_options_that_do_not_fit():
    found = only("FLOW035", workflow(approval(output="done")))
    assert "pay sets approve and reject, and done is bool" in found.message
    parcel = approval(output="kind", options=[{"name": "letter"}, {"name": "no", "rejects": True}])
    assert "pay sets no, and kind is" in only("FLOW035", workflow(parcel)).message


def ending(on: str = "done", *, otherwise: bool = False) -> dict[str, Any]:
    """A branch that nothing goes on after."""
    cases = [{"value": value, "path": {"ends": True}} for value in (True, False)]
    found = {"kind": "branch", "name": "which", "on": on, "cases": cases}
    return {**found, "otherwise": {"ends": True}} if otherwise else found


def test_FLOW036_what_follows_ends_is_never_reached():
    loop = {"kind": "repeat", "name": "loop", "until": "done", "steps": [ending()]}
    inner = {"kind": "branch", "name": "outer", "on": "done"}
    inner["cases"] = [{"value": True, "path": {"steps": [ending()]}}]
    for node in (ending(), ending(otherwise=True), loop, inner):
        found = only("FLOW036", workflow(step(), node, step("next"), step("more")))
        assert found.path == ("flow", "steps", 2)
    last = only("FLOW036", workflow(step(), ending(), **{"finally": step("last")}))
    assert last.path == ("flow", "finally")


def test_FLOW036_is_silent_where_a_path_goes_on():
    for node in (branch("done"), branch("done", True), ending() | {"otherwise": {}}, step("x")):
        assert hits("FLOW036", workflow(node, step("next"))) == []
    assert hits("FLOW036", workflow(step(), ending())) == []
