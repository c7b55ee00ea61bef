"""Family HOOK."""

from typing import get_args

import pytest

from unit.check.builders_code import codes, hits, hook, only, subject
from weft.check.rules.hooks import ARGUMENTS
from weft.findings import Place, SetValue
from weft.spec.tools import HookType


def watching(signature: str, hook_type: str, before: str = ""):
    code = {"hooks/watch.py": f"{before}def watch({signature}): ...\n"}
    return subject(code, hooks=[hook("watch", hook_type)])


def test_HOOK001_file_is_missing():
    checked = subject({"hooks/Watch.py": ""}, hooks=[hook("watch", "before_chat")])
    hit = only("HOOK001", checked)
    assert hit.path == ("hooks", 0, "file")
    assert hit.message == "the hook watch is declared in hooks/watch.py, which does not exist"
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("hooks", 0, "file"), "Watch.py"),)
    assert codes(checked) == ["HOOK001"]


def test_HOOK001_is_not_satisfied_by_a_tool_file():
    checked = subject({"tools/watch.py": ""}, hooks=[hook("watch", "before_chat")])
    assert len(hits("HOOK001", checked)) == 1


def test_HOOK002_function_is_missing():
    checked = subject({"hooks/watch.py": "def see(): ..."}, hooks=[hook("watch", "before_chat")])
    hit = only("HOOK002", checked)
    assert hit.path == ("hooks", 0, "function")
    assert hit.message == "hooks/watch.py does not define the function watch"
    assert hit.fix is None
    assert codes(checked) == ["HOOK002"]


def test_HOOK002_a_name_without_letters_is_never_mended():
    checked = subject({"hooks/watch.py": "def _(): ..."}, hooks=[hook("__", "before_chat")])
    assert only("HOOK002", checked).fix is None


@pytest.mark.parametrize(
    ("signature", "hook_type", "fault"),
    [
        ("a", "before_chat", "before_chat calls watch(), but it also requires a"),
        ("*, a", "after_agent", "also requires a"),
        ("agent", "update_agent_state", "takes only 1 of these 2"),
        ("context, *, a=1", "update_agent_state", "but it takes none"),
        ("a, b, c", "update_agent_state", "also requires c"),
        ("*args, key", "update_agent_state", "also requires key"),
        ("a, b, c", "process_message_before_send", "takes only 3 of these 4"),
        ("", "process_last_received_message", "takes none"),
        ("a, b", "process_all_messages_before_reply", "also requires b"),
    ],
)
def test_HOOK003_signature_does_not_fit(signature: str, hook_type: str, fault: str):
    hit = only("HOOK003", watching(signature, hook_type))
    assert hit.path == ("hooks", 0, "function")
    assert fault in hit.message
    assert hit.place == Place("hooks/watch.py", 1, 1)


def test_HOOK003_says_how_to_write_it():
    assert only("HOOK003", watching("a", "update_agent_state")).hint == (
        "write it as def watch(agent, messages), context_variables may follow",
    )
    assert only("HOOK003", watching("a", "before_chat")).hint == (
        "write it as def watch(context_variables) or without parameters",
    )


@pytest.mark.parametrize(
    ("signature", "hook_type"),
    [
        ("", "before_chat"),
        ("context_variables, a=1, *, b=2, **c", "before_agent"),
        ("agent, messages", "update_agent_state"),
        ("agent, messages, context_variables, more=1", "update_agent_state"),
        ("*args", "process_message_before_send"),
        ("sender, *rest, context", "process_message_before_send"),
        ("a, b, c, d", "process_message_before_send"),
        ("messages=None", "process_last_received_message"),
        ("messages, /", "process_all_messages_before_reply"),
    ],
)
def test_HOOK003_signature_fits(signature: str, hook_type: str):
    assert codes(watching(signature, hook_type)) == []


def test_HOOK003_a_decorator_may_change_everything():
    assert hits("HOOK003", watching("a, b, c", "before_chat", before="@wrapped\n")) == []


def test_HOOK003_knows_every_kind_of_hook():
    assert set(ARGUMENTS) == set(get_args(HookType))


def test_HOOK004_file_that_is_not_registered():
    code = {"hooks/watch.py": "def watch(): ...", "hooks/old.py": "", "hooks/__init__.py": ""}
    hit = only("HOOK004", subject(code, hooks=[hook("watch", "before_chat")]))
    assert hit.message == "nothing refers to hooks/old.py"
    assert hit.place == Place("hooks/old.py", 1, 1)
    assert "hooks.json" in hit.hint[0]


def test_HOOK004_file_that_another_one_imports():
    code = {"hooks/watch.py": "from .shared import x\ndef watch(): ...", "hooks/shared.py": "x=1"}
    assert codes(subject(code, hooks=[hook("watch", "before_chat")])) == []


def test_HOOK005_file_outside_of_hooks():
    checked = subject(hooks=[hook("watch", "before_chat", "../watch.py")])
    hit = only("HOOK005", checked)
    assert hit.path == ("hooks", 0, "file")
    assert hit.message == '"../watch.py" is no path to a Python file under hooks/'
    assert codes(checked) == ["HOOK005"]


def test_HOOK005_file_inside_of_hooks():
    assert hits("HOOK005", subject(hooks=[hook("watch", "before_chat", "hooks/a/b.py")])) == []
