"""What holds for every test: none of them leaves this machine."""

import asyncio
import gc
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from support.effort import TIMES
from support.mongodb_server import empty_database, mongodb_server
from support.nats_server import nats_server
from support.postgres_server import empty_postgres_database, shared_postgres
from weft.board import Board
from weft.testing.clock import ManualClock
from weft.testing.network import no_network

# The mock server is a program of its own; tests import it as `benchmarks.mock_server`.
sys.path.append(str(Path(__file__).parents[1]))

# A suite that runs in the background may ignore Ctrl-C, and so would every program a test starts.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on what else the machine does; that is no fault of the code.
# The suite draws the same examples every time, so that neither its result nor its coverage depends
# on chance; `make torture` draws others, and ten times as many.
settings.register_profile("weft", deadline=None, derandomize=TIMES == 1, max_examples=30 * TIMES)
settings.load_profile("weft")


#: What these tests do happens mostly outside of the measured packages; tracing would be slow.
NOT_MEASURED = {"architecture", "cli", "conformance", "crash", "fuzz", "stress"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure no coverage in the folders whose tests are not about the measured packages."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in NOT_MEASURED:
            item.add_marker("no_cover")


def pytest_collection_finish() -> None:
    """Let no garbage collection look through the tests themselves: there are thousands of them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test, with its board closed at the end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in wanted}

    async def run() -> None:
        async with given.get("board") or nullcontext(), asyncio.timeout(60):
            await pyfuncitem.obj(**given)

    asyncio.run(run())
    return True


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def board(clock: ManualClock) -> Board:
    """A board whose clock stands still."""
    return Board(clock=clock)


@pytest.fixture(scope="session", autouse=True)
def _no_live_calls() -> Iterator[None]:
    """Keep every model call of a test on this machine."""
    with no_network():
        yield


@pytest.fixture(autouse=True)
def _loud_tools() -> Iterator[None]:
    """Undo what an example does to the log: another test may look for what it says."""
    yield
    logging.getLogger("weft.tools").setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def mongodb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a MongoDB server, started when the first test needs it."""
    with mongodb_server(tmp_path_factory.mktemp("mongodb")) as url:
        yield url


@pytest.fixture
def mongodb_database(mongodb_url: str) -> Iterator[str]:
    """The address of an empty database, which is removed afterwards."""
    with empty_database(mongodb_url) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server; all workers of a test session share one."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with shared_postgres(folder) as url:
        yield url


@pytest.fixture(scope="module")
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The address of a database that is new for every test module."""
    with empty_postgres_database(postgres_url) as url:
        yield url


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a NATS server, started when the first test needs it."""
    with nats_server(tmp_path_factory.mktemp("nats")) as url:
        yield url
