"""The public names of Weft; this list changes only on purpose."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import weft
import weft.testing

ROOT = Path(__file__).parents[2]

PUBLIC_NAMES = [
    *("Host", "Scope", "open_host", "run"),
    *("Answer", "Stop", "UserMessage"),
    *("Event", "ModelRetry", "TextDelta", "ToolProgress", "events"),
    *("AccessDenied", "errors"),
    *("Ask", "Context", "Refuse", "RetryModel", "show_ui_tool", "tool", "use_ui_tool"),
    "__version__",
]

NAMES_FOR_TESTS = [
    *("FunctionModel", "ScriptedModel", "call"),
    *("InMemoryVectorAdapter", "WordEmbedder"),
    *("ManualClock", "host_for", "no_network", "read_package"),
    *("SHARED_STORE_CHECKS", "STORE_CHECKS"),
    *("DOCUMENT_CHECKS", "LASTING_DOCUMENT_CHECKS", "OWN_DOCUMENT_CHECKS"),
]

#: Packages that cost more to import than a program using one function of Weft should pay.
HEAVY = ("asyncio", "cyclopts", "numpy", "rich", "yaml")


def test_public_names_are_sorted_and_pinned():
    assert list(weft.__all__) == sorted(PUBLIC_NAMES)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_every_public_name_exists(name: str):
    assert hasattr(weft, name)


def test_dir_lists_every_public_name():
    assert set(PUBLIC_NAMES) <= set(dir(weft))


def test_errors_and_events_are_attributes():
    program = "import weft; print(weft.errors.WeftError.__name__, weft.events.RunStarted.__name__)"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["WeftError", "RunStarted"]


def test_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="module 'weft' has no attribute 'opne_host'"):
        _ = weft.opne_host  # pyright: ignore[reportAttributeAccessIssue]


def test_names_for_tests_are_pinned():
    assert sorted(weft.testing.__all__) == sorted(NAMES_FOR_TESTS)


@pytest.mark.parametrize("name", NAMES_FOR_TESTS)
def test_every_name_for_tests_exists(name: str):
    assert hasattr(weft.testing, name)


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'weft\.testing' has no attribute 'Model'"):
        _ = weft.testing.Model


def test_version_is_the_one_in_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert weft.__version__ == project["version"]


@pytest.mark.parametrize("door", ["weft.board", "weft.flow", "weft.retrieval", "weft.testing"])
def test_every_public_module_can_be_the_first_import(door: str):
    subprocess.run([sys.executable, "-c", f"import {door}"], check=True)


def test_import_weft_loads_nothing_heavy():
    loaded = f"[name for name in {HEAVY!r} if name in sys.modules]"
    question = f"import sys, weft, weft.testing; print({loaded})"
    answer = subprocess.run(
        [sys.executable, "-c", question], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
