"""Rules that a case of tests/findings/rules cannot show: what is measured, made up or replaced."""

import time
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

import weft.check.rules
from unit.check.builders_code import subject
from unit.check.builders_explore import RULES as EXPLORED
from unit.check.builders_explore import derived, explored_by, hits, only, rule, said, workflow
from weft.catalogue import CATALOGUE
from weft.check.board_parts import comparisons
from weft.check.rules.ui import default_exports
from weft.check.run import RULES, check, examine
from weft.check.spelling import listed, pascal_case, snake_case
from weft.check.subject import rules_of
from weft.engine.variables.trigger_index import Fires
from weft.ids import AGENT_NAME, SNAKE_NAME


def codes(checked):
    return [finding.code for finding in check(checked)]


def found(code, checked):
    return [finding for finding in check(checked) if finding.code == code]


def test_every_module_with_rules_is_applied():
    files = Path(weft.check.rules.__file__).parent.glob("[a-z]*.py")
    written = rules_of(*(import_module(f"weft.check.rules.{file.stem}") for file in files))
    assert sorted(rule.code for rule in written) == sorted(rule.code for rule in RULES)
    assert {rule.code for rule in RULES} <= set(CATALOGUE)


# -- names and code


@given(st.text(max_size=20))
def test_suggested_spellings_are_good_names_or_nothing(name):
    pascal, snake = pascal_case(name), snake_case(name)
    assert pascal == "" or AGENT_NAME.match(pascal)
    assert snake == "" or SNAKE_NAME.match(snake)


def test_listed_reads_like_a_sentence():
    assert [listed(names) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]


@pytest.mark.parametrize("text", ["a\0b", "x = '\ud800'", "(" * 5000, "-" * 100_000 + "1"])
def test_anything_that_python_refuses_is_found(text):
    (finding,) = found("CODE003", subject({"tools/x.py": text}))
    assert (finding.place.file, finding.place.line) == ("tools/x.py", 1)


@pytest.mark.parametrize(
    "piece", ["/*", "`'", '"\\"', "=/[", "export{", "export {a as default ", "return /x", "('"]
)
def test_UI005_takes_time_in_proportion_to_the_text(piece):
    start = time.process_time()
    assert list(default_exports(piece * (500_000 // len(piece)))) == []
    assert time.process_time() - start < 5


def test_long_chains_of_models_are_followed():
    names = [f"M{index}" for index in range(3000)]

    def endless(last):
        types = [*(second for _, second in pairwise(names)), last]
        models = [
            {"name": name, "fields": {"next": {"type": type_}}}
            for name, type_ in zip(names, types, strict=True)
        ]
        registry = [{"agent": "RouterAgent", "model": "M0"}]
        return codes(subject(models=models, registry=registry))

    assert endless("str") == []
    assert endless("M0") == ["OUT005"]


# -- conversations


def test_workflow_without_agents_has_one_finding():
    handoffs = [{"source_agent": "Clerk", "target_agent": "Boss"}]
    checked = subject(agents=[], handoffs=handoffs, exposure={"Clerk": ["user_id"]})
    (finding,) = check(checked)
    assert (finding.code, finding.message) == ("BIND011", "the workflow has no agents")


def test_errors_that_block_exploration_are_known():
    assert not examine(workflow(rule("A", "Bos"), agents="A")).explored
    assert examine(workflow(rule("A", "user"), agents="A")).explored


def test_HAND007_looks_at_every_pair_however_many_there_are():
    # Exclusive in pairs, but only trying values shows it: 900 pairs of 2 ** 9 combinations.
    names = [f"v{index}" for index in range(9)]
    first, second = " and ".join(names), " or ".join(f"not {name}" for name in names)
    rules = [rule("A", "B", first) for _ in range(30)]
    rules += [rule("A", "C", second) for _ in range(30)]
    rules += [rule("B", target, "v0") for target in ("user", "terminate")]
    checked = workflow(*rules, agents="ABC", variables={name: derived() for name in names})
    (finding,) = found("HAND007", checked)
    assert finding.place.file == "handoffs.61.condition"


def test_severities_of_what_exploration_finds():
    severities = ["error", "warning", "error", "error", "warning", "warning"]
    assert list(EXPLORED) == [f"HAND{number:03}" for number in (8, 9, 10, 11, 12, 25)]
    assert [CATALOGUE[code].severity for code in EXPLORED] == severities


def test_a_workflow_is_explored_once_for_all_rules(monkeypatch):
    made = []
    checked = workflow(agents="A")
    real = EXPLORED["HAND008"].check.__globals__["explore"]

    def counted(asked):
        made.append(asked)
        return real(asked)

    monkeypatch.setitem(EXPLORED["HAND008"].check.__globals__, "explore", counted)
    assert not any(hits(code, checked) for code in EXPLORED)
    assert made == [checked]


def test_HAND012_too_many_states():
    variables = {f"x{n}": derived(said("A", f"{n}")) for n in range(22)}
    rules = (rule("A", "A", name) for name in variables)
    hit = only("HAND012", workflow(*rules, agents="A", variables=variables))
    assert "make 1 x 4,194,304 states, more than 2,000,000" in hit.message
    assert hit.cause == ()
    assert hit.hint[0] == "let fewer variables decide handoffs, or give them fewer values"


TEAM = {"parallel": [{"name": "Team", "members": ["B", "C"], "next": "D"}]}


def test_a_sound_group_has_no_findings():
    settings = {**TEAM, "startup_mode": None, "human_in_the_loop": True}
    rules = (rule("A", "Team"), rule("D", "terminate"))
    assert codes(workflow(*rules, agents="ABCD", orchestrator=settings)) == ["NAME004"] * 0


def test_members_set_values_in_any_order():
    found = explored_by(
        rule("A", "Team"),
        rule("D", "terminate", "b_ok and c_ok"),
        rule("D", "user", "c_ok and not b_ok"),
        rule("D", "A"),
        agents="ABCD",
        variables={"b_ok": derived(said("B")), "c_ok": derived(said("C"))},
        orchestrator={**TEAM, "startup_mode": None, "human_in_the_loop": True},
    )
    assert found.status == "can end"
    assert found.unused_rules == ()


# -- triggers of plug-ins


class Often(BaseModel):
    """Settings of which one is required."""

    model_config = ConfigDict(extra="forbid")

    times: int


class Anything(BaseModel):
    """Settings that accept everything."""


class Kind:
    """A kind of trigger that always fires."""

    def __init__(self, settings):
        self.settings = settings

    def fires(self, *_):
        return Fires(value=True)


FIRST = "variables.x.source.triggers.0"


def plugged(*triggers):
    variables = {"x": {"type": "any", "source": {"type": "derived", "triggers": list(triggers)}}}
    return replace(
        subject(variables=variables), kinds={"often": Kind(Often), "any": Kind(Anything)}
    )


@pytest.mark.parametrize(
    ("settings", "place", "fact", "hint"),
    [
        ({"times": "many"}, f"{FIRST}.times", "times: Input should be", "it takes times"),
        ({}, FIRST, "times: Field required", "it takes times"),
        ({"times": 1, "tims": 2}, f"{FIRST}.tims", "tims: Extra", 'did you mean "times"?'),
        ({"times": 1, "zz": 2}, f"{FIRST}.zz", "zz: Extra inputs", "it takes times"),
    ],
)
def test_VAR027_settings_that_do_not_fit(settings, place, fact, hint):
    (finding,) = found("VAR027", plugged({"type": "x:often", **settings}))
    assert finding.place.file == place
    assert f"the trigger x:often of x does not fit: {fact}" in finding.message
    assert finding.hint == (hint,)


def test_only_LINK003_reports_unknown_trigger_kinds():
    unknown = [{"type": "x:moon"}, {"type": "x:often", "times": "many"}, {"type": "x:any"}]
    assert [finding.place.file for finding in found("LINK003", plugged(*unknown))] == [FIRST]


def test_VAR027_accepts_valid_settings_and_ignores_unknown_kinds():
    for trigger in ({"type": "x:often", "times": 3}, {"type": "x:any", "n": 3}, {"type": "x:z"}):
        assert found("VAR027", plugged(trigger)) == []


# -- boards and flows


def board(*agents, folder="Desk", **parts):
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    types = [{"name": name, "schema": schema} for name in ("News", "Note")]
    parts.setdefault(
        "agents", [{"agent_name": agent["agent"], "description": "x"} for agent in agents]
    )
    names = {"workflow_name": folder, "initial_agent": ""}
    return subject(
        folder=folder,
        orchestrator=names,
        board={"artifacts": types, "agents": list(agents)},
        **parts,
    )


def member(name="reader", **fields):
    return {"agent": name, "consumes": [{"types": ["News"]}], **fields}


def test_a_sound_board_has_no_findings():
    second = member("second", consumes=[{"types": ["Note"], "mode": "direct"}])
    assert check(board(member(publishes=[{"type": "Note"}]), second)) == ()


@pytest.mark.parametrize(("name", "count"), [("pep_lead", 0), ("PepLead", 0), ("pep talk", 1)])
def test_agents_of_a_board_may_be_snake_case(name, count):
    assert len(found("NAME004", board(member(name)))) == count


def test_parts_that_compare_meanings_are_found():
    semantic = {"kind": "semantic", "query": "floods"}
    nearest = rule("A", "B", "a refund", condition_type="nearest")
    matching = [{"types": ["News"], "semantic_match": "floods"}]
    for checked, phrases in (
        (board(member(context={"kind": "recent"})), []),
        (board(member(context=semantic)), ["a provider of reader is semantic"]),
        (board(member(consumes=matching)), ["a subscription of reader has semantic_match"]),
        (workflow(nearest, rule("A", "B")), ["a handoff of A is of the type nearest"]),
    ):
        assert list(comparisons(checked.spec)) == phrases


RATE = {"rate": {"type": "float", "source": {"type": "static", "value": 1}}}
FUNCTION = {"kind": "function", "function": "expense.a:f"}


def flow(*steps, folder=""):
    agents, names = [{"agent_name": "Writer"}], {"workflow_name": "Post", "initial_agent": ""}
    text = {"text": {"type": "str", "source": {"type": "derived"}}}
    parts = {"agents": agents, "variables": {**RATE, **text}, "flow": {"steps": list(steps)}}
    return subject(folder=folder, orchestrator=names, **parts)


def step(work=FUNCTION, **fields):
    return {"kind": "step", "name": "write", "work": work, **fields}


def branch(on):
    cases = [{"value": True, "path": {}}]
    return {"kind": "branch", "name": "which", "on": on, "cases": cases}


ASKED = {"kind": "agent", "agent": "Writer", "output": "text"}


def test_rules_about_handoffs_do_not_apply_to_flows():
    assert not [code for code in codes(flow(step(ASKED))) if code.startswith("HAND")]


def test_module_that_is_not_installed_here_is_a_warning():
    checked = flow(step(), folder="Post")
    assert found("CODE002", checked) == []  # It is not known what is installed.
    assert found("CODE002", replace(checked, is_installed=lambda _: True)) == []
    (finding,) = found("CODE002", replace(checked, is_installed=lambda _: False))
    assert finding.severity == "warning"
    assert finding.message.endswith("expense.a is neither a file of the package nor installed here")
    assert "copy expense/a.py into the package" in finding.hint[0]


@pytest.mark.parametrize(
    ("node", "is_read"),
    [
        (step(context={"sources": [{"kind": "variable", "name": "rate"}]}), True),
        (branch("rate > 3"), True),
        ({"kind": "approval", "name": "p", "approver": "role:a", "text": "At {rate}?"}, True),
        (step({**ASKED, "prompt": "At {rate}."}), True),
        (step(), False),
        (branch("rate ="), False),
    ],
)
def test_requested_values_of_a_flow_are_read(node, is_read):
    unused = [item.message for item in found("NAME003", flow(node)) if "variable" in item.message]
    assert [message.partition(":")[0] for message in unused] == (
        [] if is_read else ["the variable rate is never used"]
    )
    assert "VAR011" not in codes(flow(node))
