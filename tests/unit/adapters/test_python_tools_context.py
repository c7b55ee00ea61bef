"""The variables as a tool sees them during one call."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tool_play import compiled, context, state
from weft.engine.events import VariableSet
from weft.errors import ToolError
from weft.runtime.tools.context_variables import Context


def pairs(variables: Context) -> tuple[tuple[str, object], ...]:
    """End a call and return what it has set."""
    return tuple((write.name, write.value) for write in variables.finish())


def test_identity_of_the_call():
    variables = context(agent="Clerk", tool="save")
    assert (variables.run, variables.app, variables.user, variables.agent, variables.key) == (
        "run-1", "acme", "ada", "Clerk", "run-1:7",
    )  # fmt: skip
    assert repr(variables) == "Context(run='run-1', agent='Clerk', tool='save')"


def test_reads_give_values_or_the_default():
    variables = context(count=None, topic="pumps")
    assert variables.get("topic") == variables["topic"] == "pumps"
    assert variables.get("count") is variables["count"] is None
    assert variables.get("count", 3) == variables.get("nothing", 3) == 3
    with pytest.raises(KeyError, match="A may not read the variable nothing, or it does not exist"):
        variables["nothing"]


def test_no_value_is_not_contained():
    variables = context(count=None, topic="pumps")
    assert variables.contains("topic")
    assert "topic" in variables
    assert not variables.contains("count")
    assert "count" not in variables
    assert 3 not in variables
    assert "count" not in list(variables.keys())
    assert set(variables) == set(variables.to_dict()) == set(variables.keys())
    assert len(variables) == len(variables.to_dict())


def test_built_in_variables_can_be_read_and_not_set():
    variables = context()
    assert {
        name: variables[name] for name in ("app_id", "enterprise_id", "user_id", "chat_id")
    } == {
        "app_id": "acme",
        "enterprise_id": "acme",
        "user_id": "ada",
        "chat_id": "run-1",
    }
    assert variables["workflow_name"] == "W"
    with pytest.raises(ToolError, match=r"user_id .* cannot be set"):
        variables.set("user_id", "eve")


def test_only_readers_read():
    assert context(agent="Other", hidden="x").get("hidden") == "x"
    variables = context(agent="A", hidden="x")
    assert variables.get("hidden") is None
    assert "hidden" not in variables.to_dict()
    with pytest.raises(KeyError):
        variables["hidden"]


def test_undeclared_values_are_hidden():
    assert context(stray="x").get("stray") is None


def test_a_call_reads_what_it_has_set_itself():
    variables = context(agent="A", hidden="x")
    variables["hidden"] = "mine"
    assert variables["hidden"] == "mine"


def test_writes_are_collected_in_order():
    variables = context(tool="save")
    variables.set("topic", "one")
    variables["count"] = 2
    variables.update({"topic": "three", "items": ("a",)})
    variables.update(count=5)
    del variables["items"]
    variables.remove("count")
    assert pairs(variables) == (
        ("topic", "one"),
        ("count", 2),
        ("topic", "three"),
        ("items", ["a"]),
        ("count", 5),
        ("items", None),
        ("count", None),
    )


def test_keywords_are_those_of_the_style_it_follows():
    variables = context()
    variables.set(key="count", value=1)
    assert variables.get(key="count", default=3) == 1
    variables.remove(key="count")
    assert variables.contains(key="count") is False


def test_unchanged_value_is_not_recorded():
    variables = context(count=1)
    variables.set("count", 1)
    variables.set("topic", "general")
    assert pairs(variables) == ()


def test_setdefault_sets_only_what_has_no_value():
    variables = context(topic="pumps", count=None)
    assert [variables.setdefault("topic", "x"), variables.setdefault("count", 4)] == ["pumps", 4]
    assert pairs(variables) == (("count", 4),)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("nothing", 1, "there is no variable nothing"),
        ("fixed", "sand", "fixed comes from static and cannot be set"),
        ("guarded", "x", "save is not among the writers of guarded"),
        ("count", "many", "count: "),
        ("phase", "done", "phase may not change from 'new' to 'done'"),
        ("items", object(), "items cannot be set to a value of type object that is not JSON"),
        ("count", float("nan"), "count cannot be set to a value of type float that is not JSON"),
    ],
)
def test_a_write_is_refused_at_once(name, value, reason):
    variables = context(tool="save")
    with pytest.raises(ToolError) as caught:
        variables.set(name, value)
    assert str(caught.value).startswith(reason)
    assert pairs(variables) == ()


@pytest.mark.parametrize(("agent", "tool"), [("A", "keeper"), ("Chief", "save")])
def test_the_right_of_tool_or_agent_is_enough(agent, tool):
    variables = context(agent=agent, tool=tool)
    variables.set("guarded", "x")
    assert pairs(variables) == (("guarded", "x"),)


def test_transitions_count_from_what_the_call_has_set():
    variables = context()
    variables.set("phase", "open")
    variables.set("phase", "done")
    assert pairs(variables) == (("phase", "open"), ("phase", "done"))


def test_nothing_is_set_after_the_call():
    variables = context(tool="save")
    variables.set("count", 1)
    assert variables.finish() == variables.finish() == (VariableSet("count", 1, "tool:save"),)
    with pytest.raises(ToolError, match="count cannot be set: the call of save has ended"):
        variables.set("count", 2)


def test_neither_reads_nor_writes_share_anything():
    begun = state(items=["a"])
    variables = Context(compiled(), begun, turn=0, agent="A", tool="t", key="k")
    variables.get("items").append("b")
    variables["items"].append("b")
    variables.to_dict()["items"].append("b")
    mine = ["c"]
    variables.set("items", mine)
    mine.append("d")
    assert variables.get("items") == ["c"]
    assert begun.variables["items"] == ["a"]


def test_data_is_the_live_mapping():
    variables = context()
    variables.data["count"] = 3
    assert variables.data.get("count") == variables.get("count") == 3


def test_threads_may_share_it():
    variables = context(tool="save")

    def work(number: int) -> None:
        for step in range(50):
            variables.set("count", number * 1000 + step)
            assert dict(variables.items())["topic"] == "general"

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    writes = pairs(variables)
    assert len(writes) == 400
    assert writes[-1][1] == variables.get("count")
    for number in range(8):
        mine = [one[1] for one in writes if one[1] // 1000 == number]
        assert mine == sorted(mine)


@given(st.lists(st.tuples(st.sampled_from(["topic", "count", "items"]), st.integers(0, 3))))
def test_folding_the_writes_gives_what_the_call_reads(steps):
    values = {
        "topic": ["a", "b", "c", None],
        "count": [0, 1, 2, None],
        "items": [[], ["x"], ["y"], None],
    }
    variables = context()
    for name, number in steps:
        variables.set(name, values[name][number])
    folded = dict(state().variables)
    folded.update(pairs(variables))
    assert all(folded[name] == variables[name] for name in values)


def test_typed_getters_return_the_value_or_refuse_another_type():
    variables = context(topic="pumps", count=None, items=["a"])
    assert variables.get_str("topic") == "pumps"
    assert (variables.get_int("count", 3), variables.get_float("count", 2)) == (3, 2.0)
    assert (variables.get_list("items"), variables.get_dict("count")) == (["a"], {})
    assert variables.get_bool("count", default=True) is True
    with pytest.raises(ToolError, match="topic is str, not int"):
        variables.get_int("topic")
    with pytest.raises(ToolError, match="count is bool, not int"):
        variables.get_int("count", True)
