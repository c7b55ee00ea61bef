"""Groups that take their turns side by side: what is wrong with them, and what is explored."""

import pytest

from weft.check.explore import explore
from weft.check.rule import rules_of
from weft.check.rules import bind, explored, groups, handoffs
from weft.check.run import check
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(groups, explored, handoffs, bind)}
TEAM = {"name": "Team", "members": ["Ann", "Bob"], "next": "Closer"}
MERGING = {"tools/merging.py": "def pick(replies):\n    return 'ok'\n"}


def heard(agent, value=True):
    return {"type": "agent_text", "agent": agent, "match": {"contains": "fine"}, "value": value}


def derived(*triggers, type_="bool", default=False):
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source}


def rule(source, target, condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def subject(*parallel, handoffs=(), variables=None, code=None, tools=(), **orchestrator):
    names = ("Opener", "Ann", "Bob", "Closer")
    start = {"workflow_name": "W", "initial_agent": "Opener", "parallel": list(parallel)}
    rules = handoffs or (rule("Opener", "Team"), rule("Closer", "terminate"))
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {**start, **orchestrator},
                "agents": [{"agent_name": name} for name in names],
                "variables": variables or {},
                "tools": list(tools),
                "handoffs": list(rules),
            }
        ),
        code=code or {},
    )


def found(code, it):
    return [hit.message for hit in RULES[code].check(it)]


def test_a_group_is_sound():
    assert check(subject(TEAM)) == ()


@pytest.mark.parametrize(
    ("name", "of"),
    [("Ann", "an agent"), ("user", "a fixed target"), ("terminate", "a fixed target")],
)
def test_NAME010_the_name_of_a_group_is_taken(name, of):
    assert found("NAME010", subject({**TEAM, "name": name})) == [
        f'"{name}" is the name of a group and of {of}'
    ]


def test_NAME010_two_groups_of_one_name_and_a_name_that_is_no_word():
    assert found("NAME010", subject(TEAM, TEAM)) == [
        '"Team" is the name of a group and of another group'
    ]
    (message,) = found("NAME010", subject({**TEAM, "name": "my team"}))
    assert "not PascalCase" in message


def test_HAND021_members_and_next():
    group = {**TEAM, "members": ["Ann", "Bobb", "Ann"], "next": "Closr"}
    assert found("HAND021", subject(group)) == [
        '"Bobb" in the group Team is no agent',
        "Ann is in the group Team twice",
        'after the group Team comes "Closr", which is no agent',
    ]


@pytest.mark.parametrize("target", ["user", "terminate", "Team", None])
def test_HAND021_what_may_come_after_a_group(target):
    assert found("HAND021", subject({**TEAM, "next": target})) == []


@pytest.mark.parametrize(
    ("merging", "said"),
    [
        ({"merge": "custom"}, "names no function"),
        ({"function": "tools.merging:pick"}, "its function is not used"),
        ({"merge": "custom", "function": "tools.nowhere:pick"}, "no file of the package"),
        ({"merge": "custom", "function": "tools.merging:choose"}, "does not define choose"),
    ],
)
def test_HAND022_a_merge_that_cannot_be(merging, said):
    (message,) = found("HAND022", subject({**TEAM, **merging}, code=MERGING))
    assert said in message


def test_HAND022_a_function_that_is_there():
    group = {**TEAM, "merge": "custom", "function": "tools.merging:pick"}
    assert check(subject(group, code=MERGING)) == ()


TOOL = {"tool_type": "Agent_Tool", "file": "mark.py", "function": "mark", "description": "d"}
MARK = {"tools/mark.py": "def mark(context_variables):\n    context_variables.set('ok', True)\n"}


@pytest.mark.parametrize(
    ("triggers", "tools"),
    [
        ((heard("Ann"), heard("Bob")), ()),
        ((heard("Ann"),), ({**TOOL, "agent": "Bob"},)),
        (
            (heard("Ann"), {"type": "tool_call", "tool": "mark", "value": True}),
            ({**TOOL, "agent": "Bob"},),
        ),
        (
            (heard("Ann"), {"type": "ui_response", "tool": "mark", "response_key": "ok"}),
            ({**TOOL, "agent": "Bob"},),
        ),
        (
            ({"type": "tool_response", "tool": "mark", "value": True},),
            ({**TOOL, "agent": "Ann"}, {**TOOL, "agent": "Bob"}),
        ),
        (
            (
                {"type": "agent_turn_count", "agent": "Ann", "count": 2, "value": True},
                heard("Bob"),
                {"type": "user_text", "match": {"contains": "go"}, "value": True},
            ),
            (),
        ),
    ],
)
def test_HAND023_two_members_set_one_variable(triggers, tools):
    it = subject(TEAM, variables={"ok": derived(*triggers)}, tools=tools, code=MARK)
    (message,) = found("HAND023", it)
    assert "Ann and Bob may set ok" in message
    first = subject({**TEAM, "merge": "first"}, variables={"ok": derived(*triggers)}, tools=tools)
    assert found("HAND023", first) == []


def test_HAND023_each_member_has_a_variable_of_its_own():
    variables = {"ann_ok": derived(heard("Ann")), "bob_ok": derived(heard("Bob"))}
    assert found("HAND023", subject(TEAM, variables=variables)) == []


def test_a_run_may_begin_with_a_group_and_show_it_to_users():
    it = subject(
        TEAM,
        handoffs=(rule("Closer", "terminate"), rule("Opener", "user")),
        initial_agent="Team",
        visual_agents=["Team", "Closer"],
    )
    assert found("BIND005", it) == found("BIND006", it) == []
    assert explore(it).unreachable_agents == ("Opener",)


def test_members_are_reached_by_their_group_and_a_group_that_nobody_starts_is_told():
    assert explore(subject(TEAM)).unreachable_agents == ()
    idle = subject(TEAM, handoffs=(rule("Opener", "Closer"), rule("Closer", "terminate")))
    assert set(explore(idle).unreachable_agents) == {"Team", "Ann", "Bob"}
    (hit,) = RULES["HAND008"].check(idle)
    assert hit.message == "no run ever comes to Team"
    assert hit.path == ("orchestrator", "parallel", 0, "name")


def test_what_members_set_can_happen_in_any_order_and_decides_what_follows():
    variables = {"ann_ok": derived(heard("Ann")), "bob_ok": derived(heard("Bob"))}
    rules = (
        rule("Opener", "Team"),
        rule("Closer", "terminate", "ann_ok and bob_ok"),
        rule("Closer", "user", "bob_ok and not ann_ok"),
        rule("Closer", "Opener"),
    )
    it = subject(TEAM, handoffs=rules, variables=variables)
    assert explore(it).status == "can end"
    assert explore(it).unused_rules == ()


def test_a_group_that_goes_round_for_ever_is_endless():
    around = subject({**TEAM, "next": "Team"}, handoffs=(rule("Opener", "Team"),))
    (endless,) = explore(around).endless
    assert endless.agents == ("Team",)
    (hit,) = RULES["HAND010"].check(
        subject({**TEAM, "next": "Team"}, handoffs=(rule("Opener", "Team"),), initial_agent="Team")
    )
    assert hit.path == ("orchestrator", "parallel", 0, "name")


def test_redundant_implies_a_group():
    redundant = {"orchestration_pattern": "Redundant", "initial_agent": "Opener"}
    ends = subject(handoffs=(rule("Closer", "terminate"),), **redundant)
    assert explore(ends).unreachable_agents == ()
    assert explore(ends).status == "can end"
    again = subject(handoffs=(rule("Closer", "Opener"),), **redundant)
    (hit,) = RULES["HAND011"].check(again)
    assert "Closer and Redundant hand off to each other for ever" in hit.message


def test_rules_of_a_member_that_is_reached_by_its_group_alone_never_apply():
    rules = (rule("Opener", "Team"), rule("Ann", "user", "ok"), rule("Closer", "terminate"))
    it = subject(TEAM, handoffs=rules, variables={"ok": derived(heard("Ann"))})
    (message,) = found("HAND009", it)
    assert "the rule Ann -> user never applies: Ann never comes to it" in message
    plain = (rule("Opener", "Team"), rule("Ann", "user"), rule("Closer", "terminate"))
    (message,) = found("HAND009", subject(TEAM, handoffs=plain))
    assert "the rule Ann -> user never applies: Ann never comes to it" in message


@pytest.mark.parametrize(
    "triggers",
    [
        [{"type": "lifecycle", "event": "after_agent", "agent": it} for it in ("Ann", "Bob")],
        [heard("Ann"), {"type": "tool_failed", "tool": "mark"}],
    ],
)
def test_HAND023_by_boundaries_and_failures(triggers):
    tools = ({**TOOL, "agent": "Bob"},)
    code = {"tools/mark.py": "def mark(): ..."}
    it = subject(TEAM, variables={"ok": derived(*triggers)}, tools=tools, code=code)
    (message,) = found("HAND023", it)
    assert "Ann and Bob may set ok: what Ann sets counts, what differs is refused" in message
    anybody = ({"type": "tool_failed"}, {"type": "lifecycle", "event": "after_agent"})
    assert found("HAND023", subject(TEAM, variables={"ok": derived(*anybody)})) == []


def test_HAND023_what_is_merged_may_be_set_by_several():
    listed = {**derived(heard("Ann"), heard("Bob"), type_="list", default=[]), "merge": "append"}
    assert found("HAND023", subject(TEAM, variables={"ok": listed})) == []
    both = ({**TOOL, "agent": "Ann"}, {**TOOL, "agent": "Bob"})
    assert found("HAND023", subject(TEAM, tools=both, code=MARK)) == []  # no variable at all
