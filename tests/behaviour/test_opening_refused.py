"""A host is not opened with what makes no sense: it is said at once, and nothing is made."""

import asyncio
import shutil

import pytest

import weft
from weft.app.hosts import open_host
from weft.errors import UsageError
from weft.packages.shipped import shipped_folder


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
def test_a_durability_nobody_knows_is_no_weaker_one(workspace, given):
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
def test_what_is_no_price_is_refused_before_anything_is_paid_for(workspace, price):
    error = refusal(workspace, prices={"openai:mine": price})
    said = f"the price of openai:mine is two numbers of dollars from 0 on, not {price!r}"
    assert str(error) == said
    assert '"openai:mine": (0.2, 0.8)' in error.hint


def test_prices_without_models_are_refused(workspace):
    said = "prices are given by model, not as [(1, 2)]"
    assert str(refusal(workspace, prices=[(1, 2)])) == said


def test_a_model_may_cost_nothing(workspace):
    async def scenario():
        host = await open_host(workspace, journal=":memory:", prices={"ollama:a": (0, 0.0)})
        await host.close()

    asyncio.run(scenario())


def test_no_runs_are_kept_in_a_package(workspace, tmp_path_factory):
    package = workspace / "workflows" / "HelloWorld"
    error = refusal(package)
    assert str(error) == f"{package} is a package, and runs are kept in a workspace"
    assert error.hint == f"name the workspace: {workspace}"
    alone = shutil.copytree(package, tmp_path_factory.mktemp("alone") / "HelloWorld")
    assert refusal(alone).hint == f"name the workspace: {alone.parent}"


def test_a_package_alone_runs_where_its_runs_are_kept_elsewhere(workspace):
    package = workspace / "workflows" / "HelloWorld"
    state = weft.run("HelloWorld", "hi", workspace=package, journal=":memory:", model="sample")
    assert state.workflow == "HelloWorld"
