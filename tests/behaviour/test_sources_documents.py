"""Values from documents: found as declared, refreshed when declared, recorded, never made up."""

import asyncio

import pytest

from support.cases import read_cases
from support.run_play import ADA, Seconds
from support.source_play import Told, declared, derived, desk, play, tell, variable
from weft.adapters.memory import MemoryStore
from weft.engine.events import (
    ContextFetched,
    ToolFailed,
    ToolReturned,
    VariableSet,
)
from weft.ports.documents import Collection
from weft.ports.external import ExternalPorts
from weft.runtime.signals import UserMessage
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call

CASES = read_cases(__file__)

ORDER = {
    "user_id": "ada",
    "number": 7,
    "open": True,
    "total": 120.5,
    "customer": {"name": "Ada", "city": "London"},
    "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-2", "count": 1}],
}


def database(type_="any", **source):
    return variable(type_, "database", **{"collection": "Orders", **source})


def found(tmp_path, value, *, having=None, others=None, values=None, **source) -> Told:
    """Play a run with one variable from the documents."""
    spec = declared({"found": database(value, **source), **(others or {})})
    having = {"Orders": dict(ORDER)} if having is None else having
    told = play(
        spec, ScriptedModel(["Done."]), documents=tmp_path / "d.db", having=having, values=values
    )
    told.expect_same_again()
    return told


def test_search_by_takes_the_run_s_own_value_of_that_name(tmp_path):
    other = {**ORDER, "user_id": "bob", "number": 8}
    told = found(
        tmp_path, "int", having={"Orders": [ORDER, other]}, search_by="user_id", field="number"
    )
    assert told.of(VariableSet) == [VariableSet("found", 7, "source:database")]
    assert told.notes["asked"] == [("Orders", {"user_id": "ada"})]
    (fetched,) = told.of(ContextFetched)
    assert fetched.errors == {}
    assert (
        fetched.found["found"].items()
        >= {
            "collection": "Orders",
            "query": {"user_id": "ada"},
        }.items()
    )


@pytest.mark.parametrize("name", ["app_id", "enterprise_id"])
def test_search_by_the_tenant_finds_its_own_document(tmp_path, name):
    shops = [{"name": "Corner"}, {"name": "Other", "tenant": "other"}]
    told = found(
        tmp_path, "str", having={"Shops": shops}, collection="Shops", search_by=name, field="name"
    )
    assert told.state.variables["found"] == "Corner"


def test_search_by_a_declared_variable_and_a_database_of_its_own(tmp_path):
    static = {"number": variable("int", "static", value=7)}
    told = found(tmp_path, "str", others=static, search_by="number", field="customer.name")
    assert told.state.variables["found"] == "Ada"
    elsewhere = found(
        tmp_path, "str", others=static, search_by="number", field="customer.name", database="crm"
    )
    assert elsewhere.state.variables["found"] is None
    assert elsewhere.of(ContextFetched)[0].found["found"]["found"] is False


@pytest.mark.parametrize(
    ("template", "fits"), CASES["test_query_template_keeps_the_types_of_what_is_put_in"]
)
def test_query_template_keeps_the_types_of_what_is_put_in(tmp_path, template, fits):
    others = {
        "limit": variable("int", "static", value=100),
        "wanted": variable("bool", "static", value=True),
        "numbers": variable("list[int]", "static", value=[6, 7]),
        "letter": variable("str", "static", value="d"),
    }
    told = found(
        tmp_path, "int", others=others, query_template=template, field="number", default=-1
    )
    assert told.state.variables["found"] == (7 if fits else -1)


@pytest.mark.parametrize(
    ("template", "told"), CASES["test_no_query_template_looks_past_its_tenant_or_can_be_widened"]
)
def test_no_query_template_looks_past_its_tenant_or_can_be_widened(tmp_path, template, told):
    others = {
        "wide": variable("dict[str, any]", "static", value={"$gt": 0}),
        "nothing": derived("int"),
    }
    having = {"Orders": [{"number": 1, "tenant": "other"}]}
    how = {"search_by" if isinstance(template, str) else "query_template": template}
    run = found(tmp_path, "int", having=having, others=others, field="number", **how)
    assert run.row.outcome == "failed"
    assert run.row.reason.startswith("found could not be read: ")
    assert told in run.row.reason


@pytest.mark.parametrize(
    ("type_", "source", "value"),
    [
        ("str", {"field": "customer.city"}, "London"),
        ("str", {"field": "lines.1.sku"}, "B-2"),
        ("list[str]", {"field": "lines.sku"}, ["A-1", "B-2"]),
        (
            "dict[str, any]",
            {"fields": ["number", "customer.city", "nothing"]},
            {"number": 7, "customer.city": "London", "nothing": None},
        ),
        ("dict[str, any]", {}, ORDER),
    ],
)
def test_field_is_a_path_fields_are_an_object_and_without_both_it_is_the_document(
    tmp_path, type_, source, value
):
    assert found(tmp_path, type_, search_by="user_id", **source).state.variables["found"] == value


@pytest.mark.parametrize("source", [{"search_by": "user_id"}, {"query_template": {"number": 99}}])
@pytest.mark.parametrize("default", ["none", None])
def test_default_where_nothing_is_found_and_that_is_recorded(tmp_path, source, default):
    told = found(tmp_path, "str", having={}, field="customer.name", default=default, **source)
    assert told.row.outcome == "completed"
    assert told.state.variables["found"] == default
    assert told.of(ContextFetched)[0].found["found"]["found"] is False


def test_default_where_the_document_lacks_the_field(tmp_path):
    told = found(tmp_path, "str", search_by="user_id", field="customer.nickname", default="-")
    assert told.state.variables["found"] == "-"
    assert told.of(ContextFetched)[0].found["found"]["found"] is False


LIST = {"find": "many", "query_template": {"open": True}}


@pytest.mark.parametrize(
    ("type_", "source", "value"),
    [
        ("list[int]", {"field": "number"}, [9, 8, 7]),
        ("list[int]", {"field": "number", "order": "total", "limit": 2}, [8, 9]),
        ("list[int]", {"field": "number", "order": "-total"}, [7, 9, 8]),
        ("list[str]", {"field": "customer.city"}, ["London"]),
        (
            "list[dict[str, any]]",
            {"fields": ["number", "customer.city"], "limit": 1},
            [{"number": 9, "customer.city": None}],
        ),
        ("list[dict[str, any]]", {"order": "-total", "limit": 1}, [ORDER]),
    ],
)
def test_find_many_takes_a_list_by_order_and_limit(tmp_path, type_, source, value):
    orders = [
        ORDER,
        {"number": 8, "open": True, "total": 3},
        {"number": 9, "open": True, "total": 5},
        {"number": 6, "open": False, "total": 4},
        {"number": 5, "open": True, "total": 4, "tenant": "other"},
    ]
    told = found(tmp_path, type_, having={"Orders": orders}, **LIST, **source)
    assert told.state.variables["found"] == value
    assert told.of(ContextFetched)[0].found["found"]["count"] == len(value)


@pytest.mark.parametrize(("default", "value"), [(None, []), (["none"], ["none"])])
def test_find_many_without_documents_is_an_empty_list_or_the_default(tmp_path, default, value):
    told = found(tmp_path, "list[str]", having={}, field="name", default=default, **LIST)
    assert told.state.variables["found"] == value
    assert told.of(ContextFetched)[0].found["found"]["found"] is False


PHASES = [
    {"source_agent": "A", "target_agent": "B", "condition": "go == true"},
    {"source_agent": "A", "target_agent": "user"},
    {"source_agent": "B", "target_agent": "terminate"},
]
NEXT = {"type": "user_text", "match": {"contains": "next"}, "value": True}


@pytest.mark.parametrize(("strategy", "times"), [("once", 1), ("per_phase", 2), ("on_demand", 4)])
def test_refresh_strategy_says_how_often_the_store_is_asked(tmp_path, strategy, times):
    """Turns are taken by A, A, A and B: the agent changes twice, the first time from nobody."""
    variables = {
        "stock": database("int", search_by="user_id", field="number", refresh_strategy=strategy),
        "unseen": database("int", search_by="user_id", refresh_strategy="on_demand"),
        "go": derived("bool", False, NEXT),
    }
    shown = {"exposure": {"A": ["stock"], "B": ["stock"]}}
    spec = declared(variables, agents=("A", "B"), handoffs=PHASES, **shown)

    async def talk(host, run):
        await host.deliver(run, UserMessage("again"), scope=ADA)
        await host.settled(run, scope=ADA)
        await host.deliver(run, UserMessage("next"), scope=ADA)

    model = ScriptedModel({"A": ["one", "two", "three"], "B": ["Done."]})
    told = play(
        spec, model, documents=tmp_path / "d.db", having={"Orders": dict(ORDER)}, after=talk
    )
    assert told.row.outcome == "completed"
    assert len(told.notes["asked"]) == times
    assert len(told.of(ContextFetched)) == times
    assert told.values("stock") == [7], "what has not changed is no event"
    told.expect_same_again()


TOOLS = desk(
    '''
async def look(context_variables) -> list:
    """Read again."""
    before = context_variables.get("stock")
    return [before, await context_variables.refresh("stock"), context_variables["stock"]]
''',
    '''
async def choose(number: int, context_variables) -> str:
    """Choose an order and read it."""
    context_variables.set("number", number)
    return await context_variables.refresh("name")
''',
    '''
async def wrong(name: str, context_variables) -> str:
    """Read what cannot be read."""
    return await context_variables.refresh(name)
''',
)


def test_a_tool_reads_a_value_again_and_all_see_it(tmp_path):
    spec = declared({"stock": database("int", search_by="user_id", field="number")}, tools=["look"])

    def sells(store):
        async def sell(_what):
            if len(store.asked) == 2:
                store.before = None
                await store.put(ADA, Collection("Orders"), {"user_id": "ada"}, {"number": 6})

        store.before = sell

    model = ScriptedModel([call("look"), "Done."])
    told = play(
        spec,
        model,
        code=TOOLS,
        documents=tmp_path / "d.db",
        having={"Orders": dict(ORDER)},
        store=sells,
    )
    assert told.of(ToolReturned)[0].value == [7, 6, 6]
    assert told.values("stock") == [7, 6]
    assert told.writers("stock") == ["source:database"] * 2
    assert "stock: 6" in model.requests[-1].messages[0]["content"]
    told.expect_same_again()


def test_refresh_uses_the_values_that_the_call_has_set(tmp_path):
    variables = {
        "number": derived("int"),
        "name": database("str", search_by="number", field="name", default="nobody"),
    }
    having = {"Orders": [{"number": 1, "name": "Ada"}, {"number": 2, "name": "Bob"}]}
    told = play(
        declared(variables, tools=["choose"]),
        ScriptedModel([call("choose", number=2), "Done."]),
        code=TOOLS,
        documents=tmp_path / "d.db",
        having=having,
    )
    assert told.of(ToolReturned)[0].value == "Bob"
    assert told.state.variables == {"number": 2, "name": "Bob"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("plain", "plain is derived and is not read from outside"),
        ("hidden", "A may not read the variable hidden, or it does not exist"),
        ("nothing", "A may not read the variable nothing, or it does not exist"),
        ("broken", "broken could not be read: nothing is needed to find it"),
    ],
)
def test_refresh_of_another_source_is_refused(tmp_path, name, told):
    lost = database("int", query_template={"number": "{nothing}"}, refresh_strategy="on_demand")
    variables = {
        "plain": derived(),
        "hidden": {**database("int", search_by="user_id", field="number"), "readers": ["B"]},
        "broken": {**lost, "readers": ["A"]},
    }
    if name == "broken":
        variables["nothing"] = derived("int")
    spec = declared(variables, agents=("A", "B"), tools=["wrong"], exposure={})
    spec = spec.model_copy(update={"handoffs": declared({}).handoffs})
    run = play(
        spec,
        ScriptedModel({"A": [call("wrong", name=name), "Done."]}),
        code=TOOLS,
        documents=tmp_path / "d.db",
        having={"Orders": dict(ORDER)},
    )
    assert run.of(ToolFailed)[0].error.startswith(told)


def test_a_default_that_a_tool_reads_again_is_recorded_with_its_reason(tmp_path):
    stock = database("int", search_by="user_id", field="number", default=3)

    def goes_down(store):
        async def fail(_what):
            store.down = "the disk is gone" if len(store.asked) == 2 else ""

        store.before = fail

    told = play(
        declared({"stock": stock}, tools=["look"]),
        ScriptedModel([call("look"), "Done."]),
        code=TOOLS,
        documents=tmp_path / "d.db",
        having={"Orders": dict(ORDER)},
        store=goes_down,
    )
    assert told.of(ToolReturned)[0].value == [7, 3, 3]
    assert told.of(ContextFetched)[1].errors == {"stock": "the disk is gone"}
    assert told.row.outcome == "completed"
    told.expect_same_again()


@pytest.mark.parametrize("strategy", ["once", "per_phase", "on_demand"])
def test_a_fork_needs_no_store(tmp_path, strategy):
    """Not even for what the turn itself has read; and what is edited stays as it was edited."""
    stock = database("int", search_by="user_id", field="number", refresh_strategy=strategy)
    spec = declared({"stock": stock, "other": stock})
    journal = MemoryStore()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.
    told = play(
        spec,
        ScriptedModel(["Done."]),
        documents=tmp_path / "d.db",
        having={"Orders": dict(ORDER)},
        journal=journal,
    )
    model = ScriptedModel(["Again."])

    async def forked():
        clock = Seconds()
        clock.new_id()  # that of the first run
        host = host_for(spec, model, clock=clock, store=journal, outside=ExternalPorts())
        async with host:
            run = await host.fork(told.run, scope=ADA, turn=1, values={"stock": 1})
            return await tell(host, run)

    again = asyncio.run(asyncio.wait_for(forked(), 20))
    assert again.row.outcome == "completed"
    assert "stock: 1\nother: 7" in model.requests[0].messages[0]["content"]
    again.expect_same_again()
