"""The variables as a tool sees them during one call."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tool_play import compiled, context, state
from weft.engine.events import VariableSet
from weft.errors import ToolError
from weft.runtime.tools.context_variables import Context


def pairs(it: Context) -> tuple[tuple[str, object], ...]:
    """End a call and return what it has set."""
    return tuple((write.name, write.value) for write in it.finish())


def test_identity_of_the_call():
    it = context(agent="Clerk", tool="save")
    assert (it.run, it.app, it.user, it.agent, it.key) == (
        "run-1", "acme", "ada", "Clerk", "run-1:7",
    )  # fmt: skip
    assert repr(it) == "Context(run='run-1', agent='Clerk', tool='save')"


def test_reads_give_values_or_the_default():
    it = context(count=None, topic="pumps")
    assert it.get("topic") == it["topic"] == "pumps"
    assert it.get("count") is it["count"] is None
    assert it.get("count", 3) == it.get("nothing", 3) == 3
    with pytest.raises(KeyError, match="nothing is no variable that A may read"):
        it["nothing"]


def test_no_value_is_not_contained():
    it = context(count=None, topic="pumps")
    assert it.contains("topic")
    assert "topic" in it
    assert not it.contains("count")
    assert "count" not in it
    assert 3 not in it
    assert "count" not in list(it.keys())
    assert set(it) == set(it.to_dict()) == set(it.keys())
    assert len(it) == len(it.to_dict())


def test_built_in_variables_can_be_read_and_not_set():
    it = context()
    assert {name: it[name] for name in ("app_id", "enterprise_id", "user_id", "chat_id")} == {
        "app_id": "acme",
        "enterprise_id": "acme",
        "user_id": "ada",
        "chat_id": "run-1",
    }
    assert it["workflow_name"] == "W"
    with pytest.raises(ToolError, match=r"user_id .* cannot be set"):
        it.set("user_id", "eve")


def test_only_readers_read():
    assert context(agent="Other", hidden="x").get("hidden") == "x"
    it = context(agent="A", hidden="x")
    assert it.get("hidden") is None
    assert "hidden" not in it.to_dict()
    with pytest.raises(KeyError):
        it["hidden"]


def test_values_that_nobody_declared_are_hidden():
    assert context(stray="x").get("stray") is None


def test_a_call_reads_what_it_has_set_itself():
    it = context(agent="A", hidden="x")
    it["hidden"] = "mine"
    assert it["hidden"] == "mine"


def test_writes_are_collected_in_order():
    it = context(tool="save")
    it.set("topic", "one")
    it["count"] = 2
    it.update({"topic": "three", "items": ("a",)})
    it.update(count=5)
    del it["items"]
    it.remove("count")
    assert pairs(it) == (
        ("topic", "one"),
        ("count", 2),
        ("topic", "three"),
        ("items", ["a"]),
        ("count", 5),
        ("items", None),
        ("count", None),
    )


def test_keywords_are_those_of_the_style_it_follows():
    it = context()
    it.set(key="count", value=1)
    assert it.get(key="count", default=3) == 1
    it.remove(key="count")
    assert it.contains(key="count") is False


def test_a_value_that_is_there_already_is_no_news():
    it = context(count=1)
    it.set("count", 1)
    it.set("topic", "general")
    assert pairs(it) == ()


def test_setdefault_sets_only_what_has_no_value():
    it = context(topic="pumps", count=None)
    assert [it.setdefault("topic", "x"), it.setdefault("count", 4)] == ["pumps", 4]
    assert pairs(it) == (("count", 4),)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("nothing", 1, "there is no variable nothing"),
        ("fixed", "sand", "fixed comes from static and cannot be set"),
        ("guarded", "x", "save is not among the writers of guarded"),
        ("count", "many", "count: "),
        ("phase", "done", "phase may not change from 'new' to 'done'"),
        ("items", object(), "items cannot be set to a value of type object that is no JSON"),
        ("count", float("nan"), "count cannot be set to a value of type float that is no JSON"),
    ],
)
def test_a_write_is_refused_at_once(name, value, reason):
    it = context(tool="save")
    with pytest.raises(ToolError) as caught:
        it.set(name, value)
    assert str(caught.value).startswith(reason)
    assert pairs(it) == ()


@pytest.mark.parametrize(("agent", "tool"), [("A", "keeper"), ("Chief", "save")])
def test_the_right_of_tool_or_agent_is_enough(agent, tool):
    it = context(agent=agent, tool=tool)
    it.set("guarded", "x")
    assert pairs(it) == (("guarded", "x"),)


def test_transitions_count_from_what_the_call_has_set():
    it = context()
    it.set("phase", "open")
    it.set("phase", "done")
    assert pairs(it) == (("phase", "open"), ("phase", "done"))


def test_nothing_is_set_after_the_call():
    it = context(tool="save")
    it.set("count", 1)
    assert it.finish() == it.finish() == (VariableSet("count", 1, "tool:save"),)
    with pytest.raises(ToolError, match="count cannot be set: the call of save is over"):
        it.set("count", 2)


def test_neither_reads_nor_writes_share_anything():
    begun = state(items=["a"])
    it = Context(compiled(), begun, turn=0, agent="A", tool="t", key="k")
    it.get("items").append("b")
    it["items"].append("b")
    it.to_dict()["items"].append("b")
    mine = ["c"]
    it.set("items", mine)
    mine.append("d")
    assert it.get("items") == ["c"]
    assert begun.variables["items"] == ["a"]


def test_data_is_the_live_mapping():
    it = context()
    it.data["count"] = 3
    assert it.data.get("count") == it.get("count") == 3


def test_threads_may_share_it():
    it = context(tool="save")

    def work(number: int) -> None:
        for step in range(50):
            it.set("count", number * 1000 + step)
            assert dict(it.items())["topic"] == "general"

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    writes = pairs(it)
    assert len(writes) == 400
    assert writes[-1][1] == it.get("count")
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
    it = context()
    for name, number in steps:
        it.set(name, values[name][number])
    folded = dict(state().variables)
    folded.update(pairs(it))
    assert all(folded[name] == it[name] for name in values)
