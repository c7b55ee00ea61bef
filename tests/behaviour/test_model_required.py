"""In Python a run that asks a model is refused where none is named; nothing is made up."""

import asyncio
import shutil

import pytest
from pydantic import BaseModel

import weft
from weft.board import Board, FunctionEngine, ModelEngine
from weft.errors import UsageError
from weft.flow import Workflow, agent
from weft.packages.workspace import shipped_folder


class Order(BaseModel):
    number: int = 1
    note: str = ""


@pytest.fixture(autouse=True)
def no_default_model(monkeypatch):
    monkeypatch.delenv("WEFT_MODEL", raising=False)


def publish(board):
    async def play():
        async with board:
            await board.publish(Order())
            await board.run_until_idle()
            return (await board.query_artifacts())[1]

    return asyncio.run(play())


def asking_board(**options):
    board = Board(**options)
    board.types(Order).agent("clerk").consumes(Order).with_engines(ModelEngine())
    return board


def asking_flow():
    flow = Workflow.create("Orders", Order).agent("clerk", prompt="Write a note.")
    return flow.start_with(agent("clerk", output=lambda s: s.note))


REFUSED = pytest.raises(UsageError, match="no model is named for")


def test_board_that_asks_a_model_is_refused():
    with REFUSED as caught:
        publish(asking_board())
    assert 'use model="sample"' in caught.value.hint


def test_agent_without_engines_asks_a_model():
    board = Board()
    board.types(Order).agent("clerk").consumes(Order)
    with REFUSED:
        publish(board)


def test_flow_that_asks_a_model_is_refused():
    with REFUSED:
        weft.run(asking_flow(), Order())


def test_package_is_refused(tmp_path):
    shutil.copytree(shipped_folder() / "HelloWorld", tmp_path / "workflows" / "HelloWorld")
    with REFUSED:
        weft.run("HelloWorld", "hi", workspace=tmp_path)


def test_sample_model_is_used_where_it_is_named():
    assert publish(asking_board(model="sample")) == 1
    assert weft.run(asking_flow(), Order(), model="sample").outcome == "completed"


def test_environment_names_the_model(monkeypatch):
    monkeypatch.setenv("WEFT_MODEL", "sample")
    assert publish(asking_board()) == 1


def test_engine_names_the_model():
    board = Board()
    board.types(Order).agent("clerk").consumes(Order).with_engines(ModelEngine(model="sample"))
    assert publish(board) == 1


def test_code_alone_needs_no_model():
    board = Board()
    engine = FunctionEngine(lambda inputs: None)
    board.types(Order).agent("clerk").consumes(Order).with_engines(engine)
    assert publish(board) == 1
    flow = Workflow.create("Orders", Order).start_with(lambda s: {"note": "x"}, name="write")
    assert weft.run(flow, Order()).output.note == "x"
