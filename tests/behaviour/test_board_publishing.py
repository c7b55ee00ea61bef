"""Publishing: what may be on the board, what agents may put there, and what is known of it."""

import asyncio

import pytest
from pydantic import BaseModel

from support.boards import Note, Order, Payment, Receipt, Seen, play
from weft.board import (
    AfterVisibility,
    Board,
    Engine,
    EvalResult,
    FilterConfig,
    FunctionEngine,
    LabelledVisibility,
    ModelEngine,
    Output,
    PrivateVisibility,
    TagFilter,
    artifact,
)
from weft.errors import UsageError
from weft.testing import FunctionModel, ScriptedModel


def agent(board: Board, engine, *types, **options):
    made = board.agent("worker").consumes(Order).publishes(*types, **options)
    return made.with_engines(FunctionEngine(engine))


async def texts(board: Board) -> list[str]:
    found, _ = await board.query_artifacts(FilterConfig(types={"Note"}, order="created_at"))
    return [artifact.payload["text"] for artifact in found]


async def test_object_keeps_its_options(board, clock):
    board.types(Order)
    made = await board.publish(
        Order(number=1), tags={"b", "a"}, correlation_id="c1", partition="north"
    )
    (artifact,), total = await board.query_artifacts()
    assert (artifact.id, artifact.type, artifact.payload["number"]) == (made.id, "Order", 1)
    assert (artifact.tags, artifact.correlation_id, artifact.partition_key) == (
        ("a", "b"),
        "c1",
        "north",
    )
    assert (artifact.produced_by, artifact.version, total) == ("user:me", 1, 1)
    assert round(artifact.created_at.timestamp() * 1000) == clock.now()


@pytest.mark.parametrize(
    "given",
    [("Order", {"number": 4}), ({"type": "Order", "payload": {"number": 4}},)],
)
async def test_publish_by_the_name_of_a_type(given, board):
    board.types(Order)
    await board.publish(*given)
    assert (await board.query_artifacts())[0][0].payload["number"] == 4


class Stranger(BaseModel):
    text: str


def ambiguous() -> tuple[type[BaseModel], type[BaseModel]]:
    first = artifact(
        type("Twin", (BaseModel,), {"__module__": "one", "__annotations__": {"a": int}})
    )
    second = artifact(
        type("Twin", (BaseModel,), {"__module__": "two", "__annotations__": {"b": int}})
    )
    return first, second


async def test_unknown_or_invalid_artifact_is_refused(board):
    board.types(Order)
    with pytest.raises(UsageError, match="Stranger is not a type of the board"):
        await board.publish(Stranger(text="x"))
    with pytest.raises(UsageError, match="no artifacts of the type Ordr") as caught:
        await board.publish("Ordr", {"number": 1})
    assert caught.value.hint == "did you mean Order?"
    with pytest.raises(UsageError, match=r"valid Order: number: 'x' is not of type 'integer'"):
        await board.publish("Order", {"number": "x"})
    with pytest.raises(UsageError, match=r"not a valid Order: 'number' is a required property"):
        await board.publish("Order", {})
    with pytest.raises(UsageError, match="has no type"):
        await board.publish({"number": 1})
    assert (await board.query_artifacts())[1] == 0


async def test_types_of_one_name_are_distinguished_by_module(board):
    first, second = ambiguous()
    board.types(first, second)
    await board.publish(first(a=1))
    await board.publish(second(b=2))
    with pytest.raises(UsageError, match=r"several types are called Twin: one\.Twin, two\.Twin"):
        await board.publish("Twin", {"a": 1})
    found, _ = await board.query_artifacts()
    assert {item.type for item in found} == {"one.Twin", "two.Twin"}


async def test_a_payload_that_is_too_large_is_refused(board):
    board.types(Note)
    with pytest.raises(UsageError, match="4,194,304 are the limit"):
        await board.publish(Note(text="x" * 10_000_000))
    assert (await board.query_artifacts())[1] == 0


@pytest.mark.parametrize(
    "visibility",
    [
        {"kind": "secret"},
        {"kind": "private"},
        {"kind": "private", "agents": []},
        {"kind": "labelled", "labels": [1]},
        {"kind": "after", "seconds": -1},
        {"kind": "after", "seconds": 1, "then": {"kind": "?"}},
        {"kind": "public", "more": 1},
    ],
)
async def test_a_malformed_visibility_is_refused(visibility, board):
    board.types(Order)
    with pytest.raises(UsageError, match="the visibility cannot be used"):
        await board.publish(Order(number=1), visibility=visibility)
    assert (await board.query_artifacts())[1] == 0


@pytest.mark.parametrize(
    "result",
    [
        Note(text="one"),
        [Note(text="one")],
        EvalResult.of(Note(text="one")),
        {"type": "Note", "payload": {"text": "one"}},
        {"text": "one"},
        Output(Note(text="one"), tags=["x"]),
    ],
    ids=["object", "list", "result", "typed dict", "payload", "output"],
)
async def test_results_of_engines(result, board):
    agent(board, lambda inputs: result, Note)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await texts(board) == ["one"]
    (artifact,), _ = await board.query_artifacts(FilterConfig(types={"Note"}))
    assert artifact.produced_by == "worker"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            Receipt(text="x"),
            "agent worker published Receipt, which it does not declare: add .publishes(Receipt)",
        ),
        (
            Stranger(text="x"),
            "agent worker published Stranger, which it does not declare: add .publishes(",
        ),
        ({"type": "Note", "payload": {}}, "'text' is a required property"),
        (17, "a value of type int is not an artifact"),
        ([Note(text="a"), Note(text="b")], "gave 2 artifacts of the type Note; fan_out is 1"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
    ids=["undeclared", "no type", "unfit", "nonsense", "too many", "raises"],
)
async def test_invalid_engine_result_is_missed_and_the_next_works(result, told, board):
    def work(inputs):
        if inputs.first_as(Order).number == 2:
            return Note(text="fine")
        if isinstance(result, Exception):
            raise result
        return result

    board.types(Receipt)
    agent(board, work, Note)
    made = await board.publish(Order(number=1))
    await board.run_until_idle()
    (missed,) = await board.missed()
    assert (missed.why, missed.artifacts, missed.subscription) == (
        "failed",
        (made.id,),
        "worker.0",
    )
    assert told in missed.detail
    await board.publish(Order(number=2), correlation_id=made.correlation_id)
    await board.run_until_idle()
    assert await texts(board) == ["fine"]


def test_undeclared_type_and_raising_engine_are_logged_with_agent_and_traceback(caplog):
    async def test(board, clock):
        def work(inputs):
            if inputs.first_as(Order).number == 2:
                raise ZeroDivisionError("4111")
            return Receipt(text="x")

        board.types(Receipt)
        agent(board, work, Note)
        for number in (1, 2):
            await board.publish(Order(number=number))
            await board.run_until_idle()

    play(test)
    undeclared, raised = [
        record.getMessage() for record in caplog.records if record.levelname == "WARNING"
    ]
    assert undeclared == (
        "agent worker published Receipt, which it does not declare: add .publishes(Receipt)"
    )
    assert raised.startswith("work of agent worker failed with ZeroDivisionError\n")
    assert 'raise ZeroDivisionError("4111")' in raised
    assert __file__ in raised


async def test_fan_out_where_and_tags(board):
    def several(inputs):
        return [Note(text=name) for name in ("a", "skip", "b")]

    agent(board, several, Note, fan_out=3, where=lambda item: item.text != "skip", tags={"made"})
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await texts(board) == ["a", "b"]
    found, _ = await board.query_artifacts(FilterConfig(tags=TagFilter(include={"made"})))
    assert len(found) == 2


@pytest.mark.parametrize("validate", ["text != 'bad'", lambda item: item.text != "bad"])
async def test_validate_fails_the_turn_and_publishes_nothing(validate, board):
    def several(inputs):
        return [Note(text="good"), Note(text="bad")]

    agent(board, several, Note, fan_out=2, validate=validate)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await texts(board) == []
    (missed,) = await board.missed()
    assert "does not fulfil" in missed.detail


async def test_where_of_a_publication_that_cannot_be_answered_fails_the_turn(board):
    agent(board, lambda inputs: Note(text="x"), Note, where="text > 3")
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert "cannot be answered" in (await board.missed())[0].detail


def choose(payload):
    return (
        PrivateVisibility(agents=("boss",))
        if payload.text == "x"
        else LabelledVisibility(labels=("l",))
    )


@pytest.mark.parametrize(
    ("visibility", "woken"),
    [(None, True), (PrivateVisibility(agents=("reader",)), True), (choose, False)],
    ids=["public", "fixed", "computed"],
)
async def test_visibility_of_what_is_published(visibility, woken, board):
    agent(board, lambda inputs: Note(text="x"), Note, visibility=visibility)
    seen = Seen()
    board.agent("reader").consumes(Note).with_engines(seen.engine)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert bool(seen.calls) is woken


async def test_best_of_publishes_the_result_with_the_highest_score(board):
    seen = Seen(Note(text="a"), Note(text="ccc"), Note(text="bb"))
    made = board.agent("worker").consumes(Order).publishes(Note)
    made.best_of(3, lambda item: len(item[0].payload["text"])).with_engines(seen.engine)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await texts(board) == ["ccc"]
    assert len(seen.calls) == 3


async def test_engines_in_a_chain_get_what_the_one_before_made_and_share_the_state(board):
    def first(inputs, ctx):
        return EvalResult.of(Note(text="draft"), mood="good")

    async def second(inputs, ctx):
        return Note(text=f"{inputs.first_as(Note).text}, {ctx.state['mood']}")

    made = board.agent("worker").consumes(Order).publishes(Note)
    made.with_engines(FunctionEngine(first), FunctionEngine(second))
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await texts(board) == ["draft, good"]


class Shouting(Engine):
    def __init__(self, times: int = 1) -> None:
        self.times = times

    async def evaluate(self, ctx, inputs):
        context = await self.fetch_conversation_context(ctx)
        return Note(text=f"{inputs.first_as(Order).customer}{'!' * self.times} {len(context)}")


async def test_an_engine_of_ones_own(board):
    made = board.agent("worker").consumes(Order).publishes(Note)
    made.with_engines(Shouting(times=3))
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert await texts(board) == ["ada!!! 1"]


def test_model_publishes_valid_artifacts_and_gets_errors_for_others():
    async def test(board, clock):
        made = board.agent("worker").description("Writes notes.").consumes(Order).publishes(Note)
        made.with_engines(ModelEngine(instructions="Be brief."))
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert await texts(board) == ["fine"]

    sent = []

    def say(request):
        sent.append(request.messages)
        return '{"text": "fine"}' if len(sent) > 1 else '{"txt": 1}'

    play(test, model=FunctionModel(say))
    system = sent[0][0]["content"]
    assert "Writes notes." in system
    assert "Be brief." in system
    assert '"type": "Order"' in sent[0][1]["content"]
    assert "'text' is a required property" in sent[1][-1]["content"]


def test_a_model_that_publishes_several_types_and_some_of_each():
    async def test(board, clock):
        made = board.agent("worker").consumes(Order).publishes(Note, fan_out=2).publishes(Receipt)
        made.with_engines(ModelEngine())
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert await board.missed() == []
        assert await texts(board) == ["a", "b"]
        assert (await board.query_artifacts(FilterConfig(types={"Receipt"})))[1] == 1

    said = '{"Note": [{"text": "a"}, {"text": "b"}], "Receipt": {"text": "r"}}'
    play(test, model=ScriptedModel({"worker": said}))


def test_a_model_uses_its_tools():
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    async def test(board, clock):
        made = board.agent("worker").consumes(Order).publishes(Note).with_tools(weather)
        made.with_engines(ModelEngine())
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert await texts(board) == ["it says rain in Oslo"]

    from weft.testing import call

    def say(request):
        last = request.messages[-1]
        if last["role"] == "tool":
            return f'{{"text": "it says {last["content"]}"}}'
        return call("weather", city="Oslo")

    play(test, model=FunctionModel(say))


def test_a_function_asks_the_model():
    class Mood(BaseModel):
        word: str

    async def test(board, clock):
        async def work(inputs, ctx):
            return Note(text=(await ctx.ask("What mood?", output=Mood)).word)

        agent(board, work, Note)
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert await texts(board) == ["sunny"]

    play(test, model=ScriptedModel({"worker": '{"word": "sunny"}'}))


async def test_woken_agents_are_recorded_with_their_artifacts(board):
    seen = Seen()
    board.agent("worker").consumes(Order, Payment).with_engines(seen.engine)
    one = await board.publish(Order(number=1))
    two = await board.publish(Payment(number=2), correlation_id=one.correlation_id)
    await board.run_until_idle()
    history = await board.agent_history("worker")
    assert {message.artifact for message in history} == {one.id, two.id}
    found, _ = await board.query_artifacts(embed_meta=True)
    assert {item.consumed_by for item in found} == {("worker",)}
    assert await board.agent_history("nobody") == []


def test_board_in_a_file_continues_after_a_restart(tmp_path):
    seen = Seen()

    def made() -> Board:
        board = Board(journal=tmp_path / "runs.db")
        board.agent("worker").consumes(Order, Payment).with_engines(seen.engine)
        return board

    async def first(board, clock):
        await board.publish(Order(number=1), correlation_id="c")
        await board.run_until_idle()

    async def second(board, clock):
        await board.publish(Payment(number=2), correlation_id="c")
        await board.run_until_idle()

    play(first, made())
    play(second, made())
    assert seen.calls == [(1, 2)]


def test_a_board_that_another_process_defined_is_refused_with_a_code(tmp_path):
    async def first(board, clock):
        await board.publish(Order(number=1), visibility=AfterVisibility(seconds=0.001))

    async def other(board, clock):
        from weft.errors import LinkError

        host = await board.host()
        rows = await host.runs(scope=board.scope)
        with pytest.raises(LinkError) as caught:
            await host.state(rows[0].run, scope=board.scope)
        assert [finding.code for finding in caught.value.findings] == ["LINK004"]

    board = Board(journal=tmp_path / "runs.db")
    board.agent("worker").consumes(Order).with_engines(FunctionEngine(lambda inputs: None))
    play(first, board)
    play(other, Board(journal=tmp_path / "runs.db"))


def test_an_idle_correlation_ends_and_its_name_may_be_used_again():
    async def test(board, clock):
        seen = Seen()
        board.agent("worker").consumes(Order, Payment).with_engines(seen.engine)
        first = await board.publish(Order(number=1), correlation_id="c")
        await board.run_until_idle()
        await clock.advance(61)
        await board.run_until_idle()
        host = await board.host()
        row = await host.run(first.run, scope=board.scope)
        assert (row.status, row.outcome) == ("ended", "completed")
        assert [delivery.why for delivery in await board.missed()] == ["unfinished"]
        second = await board.publish(Payment(number=2), correlation_id="c")
        assert second.run != first.run
        found, _ = await board.query_artifacts(FilterConfig(correlation_id="c"))
        assert len(found) == 2

    play(test, idle_seconds=60)


async def test_many_publishers_at_once(board):
    seen = Seen()
    board.agent("worker").consumes(Order).max_concurrency(8).with_engines(seen.engine)
    wanted = [board.publish(Order(number=number), correlation_id="c") for number in range(50)]
    await asyncio.gather(*wanted)
    await board.run_until_idle()
    assert sorted(seen.calls) == [(number,) for number in range(50)]


def test_a_visibility_function_that_says_nothing_hides_nothing_open():
    for said in (lambda item: None, lambda item: {}, lambda item: "public"):

        async def test(board, clock, said=said):
            agent(board, lambda inputs: Note(text="x"), Note, visibility=said)
            await board.publish(Order(number=1))
            await board.run_until_idle()
            assert (await board.query_artifacts(FilterConfig(types={"Note"})))[1] == 0
            assert [delivery.why for delivery in await board.missed()] == ["failed"]

        play(test)


async def test_classes_of_one_name_can_be_consumed_and_published(board):
    first, second = ambiguous()
    seen = Seen()
    board.agent("x").consumes(first).publishes(second).with_engines(
        FunctionEngine(lambda inputs: second(b=2))
    )
    board.agent("y").consumes(second).with_engines(seen.engine)
    await board.publish(first(a=1))
    await board.run_until_idle()
    assert seen.calls == [(2,)]


class Counting(Engine):
    def __init__(self, start: int = 0) -> None:
        self.start = start * 2
        self.calls = 0

    async def evaluate(self, ctx, inputs):
        self.calls += 1
        return Note(text=str(self.start))


def test_the_object_that_was_given_is_the_one_that_is_called():
    engine = Counting(3)

    async def test(board, clock):
        board.agent("x").consumes(Order).publishes(Note).with_engines(engine)
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert await texts(board) == ["6"]

    play(test)
    assert engine.calls == 1


async def test_name_error_is_explained(board):
    board.types(Order)
    with pytest.raises(UsageError, match="expected a list of names, got the text"):
        await board.publish(Order(number=1), tags="web")
    with pytest.raises(UsageError, match="a tag cannot be empty"):
        await board.publish(Order(number=1), tags=[""])
    with pytest.raises(UsageError, match="cannot be a correlation"):
        await board.publish(Order(number=1), correlation_id="c#2")
    with pytest.raises(UsageError, match="Order is a class"):
        await board.publish(Order)
    await board.close()
    with pytest.raises(UsageError, match="the board board is closed"):
        await board.publish(Order(number=1))


async def test_an_id_counts_once_however_many_publish_it_at_once(board):
    seen = Seen()
    board.agent("worker").consumes(Order).with_engines(seen.engine)
    made = await asyncio.gather(*(board.publish(Order(number=1), id="o-1") for _ in range(5)))
    await board.run_until_idle()
    assert len({row.run for row in made}) == 1
    assert seen.calls == [(1,)]


def test_another_function_under_the_same_name_is_another_object(tmp_path):
    def made(engine) -> Board:
        board = Board(journal=tmp_path / "runs.db")
        board.agent("worker").consumes(Order, Payment).with_engines(FunctionEngine(engine))
        return board

    async def first(board, clock):
        await board.publish(Order(number=1), correlation_id="c")

    async def second(board, clock):
        from weft.errors import LinkError

        with pytest.raises(LinkError, match="lambda"):
            await board.publish(Payment(number=1), correlation_id="c")

    play(first, made(lambda inputs: None))
    play(second, made(lambda inputs: 17))


def test_a_file_with_a_board_is_sound(tmp_path):
    import sqlite3

    async def test(board, clock):
        board.agent("worker").consumes(Order, scope="all").publishes(Note).with_engines(
            FunctionEngine(lambda inputs: Note(text="x"))
        )
        await board.publish(Order(number=1), tags=["a"])
        await board.run_until_idle()

    play(test, Board(journal=tmp_path / "runs.db"))
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
