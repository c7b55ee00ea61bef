"""Code that a model writes for a package: read, never run, and replaced where it does not pass."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from support.generator_play import BRIEFS, always, generate, only, sound, twisted
from weft.cli.app import main
from weft.findings import Finding, Place
from weft.generator import offer
from weft.generator.guarantee import PackageVerdict, Verdict, verify
from weft.generator.simulation import Simulation
from weft.generator.steps import STEPS
from weft.ports.model import ModelRequest
from weft.testing.models import Line, call

TOOLS, UI = "AgentToolsFileGenerator", "UIFileGenerator"


def before(line: str) -> Any:
    """Return what puts a line before the first import."""
    return lambda code, _: code.replace("from weft import", f"{line}\nfrom weft import", 1)


def inside(line: str) -> Any:
    """Return what makes a line the last but one of the function."""

    def put(code: str, _: str) -> str:
        head, found, tail = code.rpartition("    return")
        return f"{head}    {line}\n{found}{tail}"

    return put


def after(text: str) -> Any:
    return lambda code, _: f"{code}\n\n{text}\n"


CANARY = "CANARY"
WRITE = f"open({CANARY!r}, 'w').close()"
#: Every file of the package gets another one of these.
HOSTILE_PYTHON = {
    "broken": after("def ("),
    "writes when imported": before(WRITE),
    "opens a socket": before("import socket; socket.create_connection(('127.0.0.1', 9))"),
    "runs a command": before(f"import os; os.system('touch {CANARY}')"),
    "writes when called": inside(WRITE),
    "default": after(f"def _x(a={WRITE}):\n    return a"),
    "decorator": after(f"@{WRITE}\ndef _x():\n    return 1"),
    "class body": after(f"class X:\n    {WRITE}"),
    "f-string": after(f'X = f"{{{WRITE}}}"'),
    "type hint": after(f"def _x(a: '{WRITE}') -> None:\n    return None"),
    "base": after(f"class X({WRITE}):\n    pass"),
    "inner ways": inside(f"().__class__.__base__.__subclasses__()[0]; eval({WRITE!r})"),
    "import by name": inside(f"__import__('os').system('touch {CANARY}')"),
    "comprehension": after(f"X = [{WRITE} for _ in 'x']"),
    "nested": inside("x = " + "+".join("1" * 2_000)),
    "endless": inside("while True: pass"),
    "long": after("# " + "x" * 30_000),
    "nothing": lambda *_: "",
}


def test_python_of_a_model_is_read_and_never_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kinds = dict(HOSTILE_PYTHON)
    plain_files: dict[str, str] = {}
    while kinds:
        used: dict[str, str] = {}

        def twist(
            request: ModelRequest, plain: dict[str, Any], used: dict[str, str] = used
        ) -> Line | None:
            if request.agent not in (TOOLS, UI):
                return None
            for it in plain["tools"]:
                if it["filename"].endswith(".py") and kinds:
                    kind, change = kinds.popitem()
                    plain_files[it["filename"]] = it["content"]
                    it["content"] = change(it["content"], it["filename"])
                    assert it["content"] != plain_files[it["filename"]]
                    used[it["filename"]] = kind
            return plain

        made = generate(twisted(twist))
        for path, kind in used.items():
            assert made.files[path] == plain_files[path], kind
            told = [why for what, why in made.replaced.items() if what.endswith(f" {path}")]
            assert told, kind
    folders = sound(made, tmp_path / "workspace")
    assert main(["check", str(folders[0])]) == 0
    assert main(["export", str(folders[0]), "-o", str(tmp_path / "it.zip")]) == 0
    (tmp_path / "other" / "workflows").mkdir(parents=True)
    assert main(["import", str(tmp_path / "it.zip"), "--workspace", str(tmp_path / "other")]) == 0
    assert not [*tmp_path.rglob(CANARY)]
