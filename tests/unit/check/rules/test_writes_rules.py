"""VAR021: what code may set."""

from typing import Any

import pytest

from unit.check.builders_code import agent, derived, hook, lifecycle, static, subject, tool
from weft.check.rules.writes import code_may_set_it

STEPS = [{"from": "open", "to": "done"}]
STATE = {"type": "str", "source": {"type": "derived", "default": "open", "transitions": STEPS}}
ENTITY = {"type": "dict", "source": {"type": "entity", "collection": "C", "search_by": "user_id"}}
VARIABLES: dict[str, Any] = {
    "count": derived("int"),
    "free": derived("any"),
    "plan": static(),
    "region": {"type": "str", "source": {"type": "environment", "env_var": "REGION"}},
    "guarded": derived("str", writers=["other"]),
    "of_router": derived("str", writers=["RouterAgent"]),
    "state": STATE,
    "record": ENTITY,
    "odd": derived("Unknown"),
}


def hits(body: str, *, parameters: str = "context_variables", more: str = "", **parts: Any):
    code = {"tools/lookup.py": f"def look({parameters}):\n    {body}\n{more}"}
    tools = parts.pop("tools", [tool("look"), tool("other", "other.py")])
    checked = subject(code, tools=tools, variables=VARIABLES, **parts)
    return list(code_may_set_it.check(checked))


@pytest.mark.parametrize(
    ("body", "fact", "hint"),
    [
        ("context_variables.set('cuont', 1)", "there is no variable cuont", 'mean "count"?'),
        ("context_variables['weather'] = 1", "there is no variable weather", "declare the"),
        ("context_variables.set('plan', 'x')", "plan comes from static", "set another variable"),
        (
            "context_variables.update({'region': 'x'})",
            "region comes from environment",
            "set another",
        ),
        ("context_variables.set('user_id', 'x')", "user_id says whose run", "set another"),
        ("context_variables.set('count', 'x')", "int", "fits int"),
        ("context_variables.setdefault('count', 1.5)", "int", "fits int"),
        ("context_variables.set('free', b'')", "bytes is no JSON value", "set a text"),
        ("context_variables.set('guarded', f())", "look is not among the writers", '"look" to'),
        ("context_variables.set('state', 'lost')", 'no transition leads to "lost"', "add the"),
        ("context_variables.remove('plan')", "plan comes from static", "set another variable"),
        ("set_context_variable(context_variables, 'plan', 1)", "comes from static", "set another"),
    ],
)
def test_a_write_that_is_always_refused(body, fact, hint):
    (hit,) = hits(body)
    assert fact in hit.message
    assert hit.message.startswith("look sets ")
    assert hint in hit.hint[0]
    assert hit.path == ("tools", 0, "function")
    assert (hit.place.file, hit.place.line, hit.place.column) == ("tools/lookup.py", 2, 5)


@pytest.mark.parametrize(
    "body",
    [
        "context_variables.set('count', 1)",
        "context_variables.set('count', None)",
        "context_variables.set('count', found)",
        "context_variables.set(name, 1)",
        "context_variables['record'] = {}",
        "context_variables.set('of_router', 'x')",
        "context_variables.set('state', 'done')",
        "context_variables.set('state', 'open')",
        "context_variables.set('odd', 1)",
        "redis.set('weather', 1)",
        "context_variables.remove('count')",
        "context_variables.pop('weather', None)",
        "self.context_variables.set('weather', 1)",
        "ctx['weather'] = 1",
        "a = context_variables['weather'] = 1",
        "tools.set_context_variable(context_variables, 'weather', 1)",
    ],
)
def test_a_write_that_may_be_made_or_is_none(body):
    assert hits(body) == []


def test_context_counts_only_in_the_declared_function():
    far = "def draw(context):\n    context['title'] = 1\n"
    assert hits("draw({})", parameters="context", more=far) == []
    (hit,) = hits("context['title'] = 1", parameters="context")
    assert "title" in hit.message


def test_a_write_in_what_the_function_uses_is_told_once():
    far = "def keep(context_variables):\n    context_variables.set('weather', 1)\n"
    tools = [tool("look"), tool("look", agent="TechAgent")]
    agents = [agent("RouterAgent"), agent("TechAgent")]
    (hit,) = hits("keep(context_variables)", more=far, tools=tools, agents=agents)
    assert hit.place.line == 4


def test_an_agent_without_the_right_gives_none_to_its_tool():
    agents = [agent("RouterAgent"), agent("TechAgent")]
    body = "context_variables.set('of_router', 'x')"
    tools = [tool("look", agent="TechAgent")]
    (hit,) = hits(body, tools=tools, agents=agents)
    assert "look is not among the writers of of_router" in hit.message
    assert hits(body, tools=[tool("look")], agents=agents) == []


def test_a_tool_named_trigger_is_no_trigger():
    code = {
        "tools/lookup.py": "def trigger(context_variables):\n    context_variables.set('it', 1)"
    }
    tools = [tool("trigger"), tool("other", "other.py")]
    variables = {"it": derived("int", writers=["other"])}
    (hit,) = code_may_set_it.check(subject(code, tools=tools, variables=variables))
    assert "trigger is not among the writers of it" in hit.message


def test_a_writer_that_does_not_exist_may_be_the_one_that_is_meant():
    # Without the tool `other`, BIND008 speaks of it.
    assert hits("context_variables.set('guarded', 'x')", tools=[tool("look")]) == []


def test_lifecycle_tools_and_hooks_set_variables_too():
    code = {
        "tools/start.py": "def begin(context_variables):\n    context_variables.set('a', 1)\n",
        "hooks/watch.py": "def watch(context_variables):\n    context_variables.set('b', 1)\n",
    }
    checked = subject(
        code,
        lifecycle_tools=[lifecycle("begin"), lifecycle("gone", "../gone.py")],
        hooks=[hook("watch", "before_chat")],
    )
    found = [hit.path for hit in code_may_set_it.check(checked)]
    assert found == [("lifecycle_tools", 0, "function"), ("hooks", 0, "function")]


def at(point, name, agent=None):
    setting = f"def watch(context_variables):\n    context_variables.set('{name}', 'x')\n"
    checked = subject(
        {"hooks/watch.py": setting, "tools/start.py": setting.replace("watch", "load")},
        hooks=[hook("watch", point, agent=agent)],
        lifecycle_tools=[lifecycle("load", trigger=point, agent=agent)],
        variables=VARIABLES,
    )
    return [hit.message for hit in code_may_set_it.check(checked)]


def test_at_the_turns_of_all_agents_code_has_the_rights_of_each():
    assert at("after_agent", "of_router") == []
    assert at("after_agent", "of_router", "RouterAgent") == []
    for whose in (None, "RouterAgent"):  # At the start of a run none is there.
        assert at("on_start", "of_router", whose) == [
            "load sets of_router, but load is not among the writers of of_router",
            "watch sets of_router, but watch is not among the writers of of_router",
        ]
