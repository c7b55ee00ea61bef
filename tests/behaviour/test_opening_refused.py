"""A host is not opened with what makes no sense: it is said at once, and nothing is made."""

import asyncio
import shutil
import sys

import pytest

import weft
from support.cases import read_cases
from weft.app.hosts import LOCAL, open_host
from weft.errors import UsageError
from weft.packages.workspace import shipped_folder

CASES = read_cases(__file__)


@pytest.fixture
def workspace(tmp_path):
    shutil.copytree(shipped_folder() / "HelloWorld", tmp_path / "workflows" / "HelloWorld")
    return tmp_path


def refusal(workspace, **options):
    async def scenario():
        with pytest.raises(UsageError) as caught:
            await open_host(workspace, **options)
        return caught.value

    error = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert not list(workspace.rglob(".weft"))
    return error


@pytest.mark.parametrize("given", ["Full", "foo", "", 1])
def test_unknown_durability_is_refused(workspace, given):
    said = f"durability is full or normal, not {given!r}"
    assert str(refusal(workspace, durability=given)) == said


@pytest.mark.parametrize(
    "price",
    [
        3,
        None,
        "34",
        ("x", 2),
        (1, None),
        (1,),
        (1, 2, 3),
        (float("nan"), 2),
        (1, float("inf")),
        (-1, 2),
    ],
)
def test_invalid_price_is_refused_before_any_call(workspace, price):
    error = refusal(workspace, prices={"openai:mine": price})
    said = f"the price of openai:mine is two numbers of dollars from 0 on, not {price!r}"
    assert str(error) == said
    assert '"openai:mine": (0.2, 0.8)' in error.hint


@pytest.mark.parametrize(
    ("name", "value", "message"), CASES["test_setting_that_can_never_work_is_refused"]
)
def test_setting_that_can_never_work_is_refused(workspace, name, value, message):
    error = refusal(workspace, environment={name: value})
    assert message in str(error)
    assert error.hint
    assert "secret" not in f"{error} {error.hint}"


def test_missing_library_for_documents_is_named(workspace, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymongo", None)
    monkeypatch.delitem(sys.modules, "weft.adapters.documents.mongodb", raising=False)
    error = refusal(workspace, environment={"WEFT_DOCUMENTS": "mongodb://u:secret@h/d"})
    assert str(error) == "MongoDB needs a library that is not installed: pymongo"


async def test_password_in_a_model_address_is_refused(workspace):
    async with await open_host(workspace, journal=":memory:") as host:
        with pytest.raises(UsageError, match="contains a user name or password") as caught:
            await host.start("HelloWorld", scope=LOCAL, model="http://u:pw@127.0.0.1:9/v1#m")
        assert await host.runs(scope=LOCAL) == []
        error = caught.value
    assert "pw" not in f"{error} {error.hint}".replace("password", "")
    assert "WEFT_MODEL_KEYS=HOST:PORT=KEY" in error.hint


def test_prices_without_models_are_refused(workspace):
    said = "prices are given by model, not as [(1, 2)]"
    assert str(refusal(workspace, prices=[(1, 2)])) == said


async def test_a_model_may_cost_nothing(workspace):
    host = await open_host(workspace, journal=":memory:", prices={"ollama:a": (0, 0.0)})
    await host.close()


def test_no_runs_are_kept_in_a_package(workspace, tmp_path_factory):
    package = workspace / "workflows" / "HelloWorld"
    error = refusal(package)
    assert str(error) == f"{package} is a package; runs are stored in a workspace"
    assert error.hint == f"name the workspace: {workspace}"
    alone = shutil.copytree(package, tmp_path_factory.mktemp("alone") / "HelloWorld")
    assert refusal(alone).hint == f"name the workspace: {alone.parent}"


def test_a_package_alone_runs_where_its_runs_are_kept_elsewhere(workspace):
    package = workspace / "workflows" / "HelloWorld"
    state = weft.run("HelloWorld", "hi", workspace=package, journal=":memory:", model="sample")
    assert state.workflow == "HelloWorld"
