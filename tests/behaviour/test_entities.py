"""Entity variables: documents that a run reads, changes and writes back, whatever becomes of it."""

import asyncio
from itertools import count

import pytest

from support.run_play import ADA, Seconds
from support.source_play import (
    MortalJournal,
    declared,
    derived,
    desk,
    documents_in,
    play,
    store_at,
    tell,
    variable,
)
from weft.engine.events import (
    DocumentWritten,
    RunEnded,
    RunEnding,
    ToolFailed,
    VariableRefused,
    VariableSet,
)
from weft.errors import ModelError, RunError, StoreError
from weft.ports.documents import Collection
from weft.ports.external import ExternalPorts
from weft.runtime.signals import Stop
from weft.runtime.variables import sources
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

TOOLS = desk(
    '''
def move(to: str, context_variables) -> dict:
    """Change the order."""
    order = {**(context_variables.get("order") or {}), "status": to}
    context_variables.set("order", order)
    return order
''',
    '''
def put(value: dict | list | str | None, context_variables) -> str:
    """Put something in its place."""
    context_variables.set("order", value)
    return "done"
''',
    """
async def after(context_variables) -> None:
    await asyncio.sleep(0.2)
    context_variables.set("noted", True)
""",
)
ORDER = {"user_id": "ada", "status": "new", "total": 12, "history": ["made"]}


def entity(**source):
    schema = {"status": {"type": "str"}, "total": {"type": "int"}}
    usual = {"collection": "Orders", "search_by": "user_id", "schema": schema}
    return variable("dict[str, any]", "entity", **{**usual, **source})


def moving(*states, end="Done."):
    return ScriptedModel([*(call("move", to=state) for state in states), end])


def play_order(tmp_path, model, *, source=None, having=ORDER, tools=("move", "put"), **options):
    """Play a run with an order and return it with the documents there are then."""
    variables = {"order": entity(**(source or {})), **options.pop("variables", {})}
    declare = options.pop("declare", {})
    spec = declared(variables, tools=tools, **declare)
    path = tmp_path / "d.db"
    having = {"Orders": dict(having)} if having else {}
    told = play(spec, model, code=TOOLS, documents=path, having=having, **options)
    told.expect_same_again()
    return told, asyncio.run(documents_in(path, "Orders"))


def test_an_entity_is_read_changed_by_a_tool_and_written(tmp_path):
    told, documents = play_order(tmp_path, moving("paid"))
    read = {key: value for key, value in ORDER.items() if key != "user_id"}
    assert told.of(VariableSet) == [
        VariableSet("order", read, "source:entity"),
        VariableSet("order", {**read, "status": "paid"}, "tool:move"),
    ], "what it is found by is no field of it"
    written = next(event for event in told.events if event.data == told.of(VariableSet)[1])
    assert told.of(DocumentWritten) == [DocumentWritten("order", written.seq)]
    assert documents == [{**ORDER, "status": "paid"}], "and what was only read is not written"
    assert len(told.notes["written"]) == 1


def test_a_document_that_is_not_there_has_its_default_until_it_is_made(tmp_path):
    told, documents = play_order(
        tmp_path, moving("paid"), having={}, source={"default": {"total": 0}}
    )
    assert told.values("order") == [{"total": 0}, {"total": 0, "status": "paid"}]
    assert documents == [{"user_id": "ada", "total": 0, "status": "paid"}]
    untouched, none = play_order(
        tmp_path / "..", ScriptedModel(["Done."]), having={}, source={"collection": "Other"}
    )
    assert untouched.state.variables["order"] is None
    assert untouched.of(DocumentWritten) == none == []


def test_an_entity_may_be_in_a_database_of_its_own(tmp_path):
    told, documents = play_order(tmp_path, moving("paid"), source={"database": "crm"})
    assert told.values("order") == [{"status": "paid"}]
    assert documents == [ORDER], "that of the workspace is another"
    again, _ = play_order(tmp_path, moving("sent"), having=None, source={"database": "crm"})
    assert again.values("order")[0] == {"status": "paid"}


@pytest.mark.parametrize("tenant", ["app_id", "enterprise_id"])
def test_the_one_document_of_a_tenant_is_written(tmp_path, tenant):
    mine = {"status": "new", "total": 1}
    source = {"search_by": tenant}
    told, documents = play_order(tmp_path, moving("paid", "sent"), having=mine, source=source)
    assert told.row.outcome == "completed"
    assert documents == [{"status": "sent", "total": 1}]
    _, made = play_order(tmp_path, moving("new"), having={}, source=source | {"collection": "One"})
    assert made == documents
    assert asyncio.run(documents_in(tmp_path / "d.db", "One")) == [{"status": "new"}]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"status": 3}, "order.status: expected str, got 3"),
        ({"status": "paid", "total": "many"}, 'order.total: expected int, got "many"'),
        ("paid", 'order: expected dict, got "paid"'),
        (None, "order is a document and cannot be set to nothing"),
    ],
)
def test_value_outside_the_schema_is_refused_to_the_tool(tmp_path, value, told):
    run, documents = play_order(tmp_path, ScriptedModel([call("put", value=value), "Done."]))
    assert run.of(ToolFailed)[0].error == told
    assert run.row.outcome == "completed"
    assert documents == [ORDER]


def test_a_document_that_does_not_fit_its_schema_is_not_taken(tmp_path):
    told, documents = play_order(tmp_path, ScriptedModel(["Done."]), having={**ORDER, "total": "?"})
    assert told.row.outcome == "failed"
    assert told.row.reason == (
        'order could not be read: it has the wrong shape: order.total: expected int, got "?"'
    )
    assert documents == [{**ORDER, "total": "?"}]


def kinds(told, *wanted):
    return [type(event.data).__name__ for event in told.events if isinstance(event.data, wanted)]


TO_B = [
    {"source_agent": "A", "target_agent": "B"},
    {"source_agent": "B", "target_agent": "terminate"},
]


@pytest.mark.parametrize(
    ("strategy", "seen", "times"),
    [
        ("immediate", [0, 1, 2, 2], 2),
        ("on_phase_transition", [0, 0, 0, 1], 1),
        ("on_workflow_end", [0, 0, 0, 0], 1),
    ],
)
def test_write_strategy_says_when_the_document_is_written(tmp_path, strategy, seen, times):
    """How often it was written is counted before each reply: three of A and one of B."""
    stores, counted = [], []
    lines = [call("move", to="paid"), call("move", to="sent"), "Next.", "Done."]

    async def reply(_request):
        await asyncio.sleep(0.05)
        counted.append(len(stores[0].written))
        return lines[len(counted) - 1]

    told, documents = play_order(
        tmp_path,
        FunctionModel(reply),
        source={"write_strategy": strategy},
        declare={"agents": ("A", "B"), "handoffs": TO_B},
        store=stores.append,
    )
    assert counted == seen
    assert len(told.notes["written"]) == len(told.of(DocumentWritten)) == times
    assert documents[0]["status"] == "sent"


@pytest.mark.parametrize("strategy", ["immediate", "on_phase_transition", "on_workflow_end"])
@pytest.mark.parametrize("end", ["completes", "fails", "is stopped"])
def test_a_document_is_written_however_the_run_ends(tmp_path, strategy, end):
    last = ModelError("no more") if end == "fails" else "Done."
    rules = [{"source_agent": "A", "target_agent": "user" if end == "is stopped" else "terminate"}]

    async def stop(host, run):
        if end == "is stopped":
            await host.deliver(run, Stop(), scope=ADA)

    told, documents = play_order(
        tmp_path,
        moving("paid", end=last),
        source={"write_strategy": strategy},
        declare={"handoffs": rules},
        after=stop,
    )
    outcomes = {"completes": "completed", "fails": "failed", "is stopped": "cancelled"}
    assert told.row.outcome == outcomes[end]
    assert documents[0]["status"] == "paid"


def test_two_quick_changes_are_written_in_their_order(tmp_path):
    """The first is still being written when the second comes."""

    def slow_at_first(store):
        async def wait(what):
            if what == "put":
                store.before = None
                await asyncio.sleep(0.2)

        store.before = wait

    told, documents = play_order(tmp_path, moving("paid", "sent"), store=slow_at_first)
    assert [entry["status"] for _, entry in told.notes["written"]][-1] == "sent"
    assert documents[0]["status"] == "sent"
    assert told.row.outcome == "completed"


TROUBLES = {
    "down": "the disk is full",
    "slow": "the document store did not answer in time",
    "odd": "it failed unexpectedly, with ZeroDivisionError",
    "exits": "it failed unexpectedly, with SystemExit",
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("strategy", ["immediate", "on_workflow_end"])
def test_a_store_in_trouble_makes_the_run_fail_with_the_reason(
    tmp_path, monkeypatch, strategy, trouble
):
    def fails(store):
        async def fail(what):
            if what != "put":
                return
            if trouble == "odd":
                raise ZeroDivisionError
            if trouble == "exits":
                raise SystemExit
            monkeypatch.setattr(sources, "PATIENCE", 0.05)
            await asyncio.sleep(30 if trouble == "slow" else 0)
            store.down = "the disk is full"

        store.before = fail

    monkeypatch.setattr(sources, "PATIENCE", 0.5)
    source = {"write_strategy": strategy}
    told, documents = play_order(tmp_path, moving("paid"), source=source, store=fails)
    assert told.row.outcome == "failed"
    reason = f"the document of order could not be written: {TROUBLES[trouble]}"
    assert told.row.reason.count(reason) == 1
    assert {event.error for event in told.of(DocumentWritten)} == {TROUBLES[trouble]}
    assert documents == [ORDER]
    monkeypatch.setattr(sources, "PATIENCE", 10.0)  # A busy machine may need more than above.
    again, documents = play_order(tmp_path, moving("paid"), having=None, source=source)
    assert (again.row.outcome, documents[0]["status"]) == ("completed", "paid")


@pytest.mark.parametrize("strategy", ["immediate", "on_workflow_end"])
def test_on_error_warn_records_the_error_and_the_run_continues(tmp_path, strategy):
    stores = []

    async def recover(_request):
        lines = [call("move", to="paid"), call("move", to="sent"), "Done."]
        recover.calls += 1
        await asyncio.sleep(0.05)
        stores[0].down = "the disk is full" if recover.calls == 1 else ""
        return lines[recover.calls - 1]

    recover.calls = 0
    source = {"on_error": "warn", "write_strategy": strategy}
    told, documents = play_order(
        tmp_path, FunctionModel(recover), source=source, store=stores.append
    )
    errors = [event.error for event in told.of(DocumentWritten)]
    assert errors == (["the disk is full", ""] if strategy == "immediate" else [""])
    assert told.row.outcome == "completed"
    assert documents[0]["status"] == "sent", "a later value is written again"


def test_on_error_warn_ends_the_run_without_its_document(tmp_path):
    def fails(store):
        async def fail(what):
            store.down = "the disk is full" if what == "put" else ""

        store.before = fail

    told, documents = play_order(tmp_path, moving("paid"), source={"on_error": "warn"}, store=fails)
    assert [event.error for event in told.of(DocumentWritten)] == ["the disk is full"]
    assert (told.row.outcome, documents) == ("completed", [ORDER])


def test_run_waits_for_hooks_after_the_chat_and_documents(tmp_path):
    """An entity that is written at once may still be when the run comes to its end."""
    hooks = [{"hook_type": "after_chat", "file": "tools/desk.py", "function": "after"}]
    code = {"hooks/desk.py": TOOLS["tools/desk.py"], **TOOLS}

    def slow(store):
        store.before = lambda what: asyncio.sleep(0.05 if what == "put" else 0)

    spec = declared(
        {"order": entity(), "noted": derived("bool", False)},
        tools=["move"],
        hooks=[{**hooks[0], "file": "desk.py"}],
    )
    told = play(
        spec,
        moving("paid"),
        code=code,
        documents=tmp_path / "d.db",
        having={"Orders": dict(ORDER)},
        store=slow,
    )
    assert told.state.variables["noted"] is True
    assert kinds(told, DocumentWritten, RunEnding, RunEnded)[-1] == "RunEnded"
    assert told.row.outcome == "completed"


def test_members_of_a_group_write_what_counts_when_they_have_joined(tmp_path):
    group = {"name": "P", "members": ["A", "B"], "next": "terminate"}
    tools = [
        {"tool_type": "Agent_Tool", "agent": name, "file": "desk.py", "function": "move"}
        for name in ("A", "B")
    ]
    model = ScriptedModel(
        {"L": "Go.", "A": [call("move", to="paid"), "."], "B": [call("move", to="sent"), "."]}
    )
    told, documents = play_order(
        tmp_path,
        model,
        tools=tools,
        declare={
            "agents": ("L", "A", "B"),
            "orchestrator": {"parallel": [group]},
            "handoffs": [{"source_agent": "L", "target_agent": "P"}],
        },
    )
    assert documents[0]["status"] == "paid"
    assert len(told.notes["written"]) == 1
    (refused,) = told.of(VariableRefused)
    assert (refused.name, refused.writer) == ("order", "agent:B")


def test_a_fork_writes_only_what_it_sets_itself(tmp_path):
    """What was set before belongs to the other run, and others may have changed it since."""
    stores = []

    async def fork(host, run):
        change = {"status": "shipped"}
        await stores[0].put(ADA, Collection("Orders"), {"user_id": "ada"}, change)
        return await host.fork(run, scope=ADA, turn=2)

    told, documents = play_order(
        tmp_path,
        ScriptedModel({"A": [call("move", to="paid"), "."], "B": [".", "."]}),
        source={"write_strategy": "on_workflow_end"},
        declare={"agents": ("A", "B"), "handoffs": TO_B},
        store=stores.append,
        after=fork,
    )
    assert told.row.parent
    assert documents[0]["status"] == "shipped"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("strategy", ["immediate", "on_phase_transition", "on_workflow_end"])
def test_a_document_is_written_though_the_process_dies_at_any_write(tmp_path, strategy, after):
    spec = declared({"order": entity(write_strategy=strategy)}, tools=["move"])

    async def story(fatal):
        """Tell whether it died, and what became of the document."""
        journal = MortalJournal(fatal, after=after)
        path = tmp_path / f"{fatal}.db"

        def said(request):
            calls = sum(message["role"] == "tool" for message in request.messages)
            return (call("move", to="paid"), call("move", to="sent"), "Done.")[calls]

        async with store_at(path, {"Orders": dict(ORDER)}) as store:
            for life in (0, 1):
                model, outside = FunctionModel(said), ExternalPorts(documents=store)
                store.close = lambda: asyncio.sleep(0)
                host = host_for(
                    spec, model, code=TOOLS, clock=Seconds(), store=journal, outside=outside
                )
                async with host:
                    try:
                        if life:
                            await host.resume("r", scope=ADA, take_over=True)
                        else:
                            await host.start("W", scope=ADA, message="hello", run="r")
                        told = await tell(host, "r")
                    except (StoreError, RunError):  # The journal says so.
                        journal.fatal = 0
                    else:
                        break
                if not (await journal.runs(ADA)):
                    return True, None
            del store.close
        told.expect_same_again()
        assert told.row.outcome == "completed"
        return bool(life), (await documents_in(path, "Orders"))[0]

    deaths = 0
    for fatal in count(1):
        died, document = asyncio.run(asyncio.wait_for(story(fatal), 30))
        assert document in (None, {**ORDER, "status": "sent"}), fatal
        deaths += died
        if not died:
            break
    assert deaths >= 5


def test_next_run_reads_the_written_document(tmp_path):
    record = {"status": {"type": "optional[str]"}}
    model = {"name": "Record", "description": "An order.", "fields": record}
    order = variable("Record", "entity", collection="Orders", search_by="user_id", schema=record)
    order["source"]["default"] = {}
    spec = declared({"order": order}, tools=("move",), models=[model])
    path = tmp_path / "d.db"
    play(spec, moving("paid"), code=TOOLS, documents=path)
    assert asyncio.run(documents_in(path, "Orders")) == [{"user_id": "ada", "status": "paid"}]
    told = play(spec, moving("sent"), code=TOOLS, documents=path)
    assert told.values("order") == [{"status": "paid"}, {"status": "sent"}]
    assert asyncio.run(documents_in(path, "Orders")) == [{"user_id": "ada", "status": "sent"}]
