"""A server for each test module: two small packages, and the model `sample`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.desk_play import make_desk
from support.server_play import Server, serving


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the package Desk and the examples."""
    folder = tmp_path_factory.mktemp("workspace")
    make_desk(folder)
    return folder


@pytest.fixture(scope="module")
def server(workspace: Path) -> Iterator[Server]:
    """A server of this workspace."""
    with serving(workspace) as server:
        yield server
