"""A host is not opened with what makes no sense: it is said at once, and nothing is made."""

import asyncio
import shutil

import pytest

from weft.errors import UsageError
from weft.opening.hosts import open_host
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
