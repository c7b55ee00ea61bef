"""A command line to talk to, and small workspaces to talk about."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.desk_play import make_desk
from weft.cli.app import main

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


Weft = Callable[..., Outcome]
T = TypeVar("T")


@pytest.fixture
def weft(capsys: pytest.CaptureFixture[str]) -> Weft:
    """Run a command in this process."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return Outcome(int(code), printed.out, printed.err)

    return run


@pytest.fixture
def shell() -> Weft:
    """Run a command in a process of its own, as a shell would."""

    def run(*words: object, **options: Any) -> Outcome:
        environment = {**os.environ, **options.pop("env", {})}
        result = subprocess.run(
            [sys.executable, "-m", "weft", *(str(word) for word in words)],
            capture_output=True,
            check=False,
            env=environment,
            timeout=60,
            **options,
        )
        return Outcome(
            result.returncode, result.stdout.decode("utf-8"), result.stderr.decode("utf-8")
        )

    return run


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give lines to stdin, which is not a terminal; at first it has none."""

    def give(*lines: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    give()
    return give


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with the packages of `make_desk`, no model named, and the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    make_desk(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def _kept() -> dict[str, tuple[Path, Any]]:
    """Workspaces that commands have filled, each with what the fixture returned."""
    return {}


@pytest.fixture
def prepared(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, _kept: dict[str, tuple[Path, Any]]
) -> Callable[[str, Callable[[], T]], T]:
    """Fill the workspace by commands once; later tests get a copy of it and of the result."""

    def prepare(name: str, fill: Callable[[], T]) -> T:
        if name not in _kept:
            result = fill()
            folder = tmp_path_factory.mktemp(name)
            shutil.copytree(tmp_path, folder, dirs_exist_ok=True)
            _kept[name] = folder, result
        folder, result = _kept[name]
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        return result

    return prepare


ORCHESTRATOR = {"workflow_name": "Support", "initial_agent": "Helper", "max_turns": 10}
AGENTS = {
    "agents": [
        {
            "agent_name": "Helper",
            "prompt_sections": [{"id": "role", "heading": "Role", "content": "Help the customer."}],
        }
    ]
}


def _write(folder: Path, name: str, content: object) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content, indent=2)
    file.write_text(text, encoding="utf-8")
    return file


def _make_package(folder: Path, **changes: object) -> Path:
    orchestrator = {**ORCHESTRATOR, "workflow_name": folder.name, **changes}
    _write(folder, "orchestrator.json", orchestrator)
    _write(folder, "agents.json", AGENTS)
    return folder


@pytest.fixture
def write() -> Callable[[Path, str, object], Path]:
    """Write a file of a package: text as it is, anything else as JSON."""
    return _write


@pytest.fixture
def make_package() -> Callable[..., Path]:
    """Write a package without faults; further arguments go into its orchestrator."""
    return _make_package


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one package without faults, and the current folder."""
    _make_package(tmp_path / "workflows" / "Support")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def support(workspace: Path) -> Path:
    """The package of the workspace."""
    return workspace / "workflows" / "Support"
