"""Family HOOK."""

from typing import get_args

import pytest

from unit.check.builders_code import codes, hits, hook, only, subject
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


IN_RUN = ("before_chat", "after_chat", "on_start", "on_complete", "on_fail")
IN_TURN = tuple(it for it in get_args(HookType) if it not in IN_RUN)


@pytest.mark.parametrize(
    ("signature", "hook_type", "lacking"),
    [
        ("a", "before_chat", "a"),
        ("agents, messages", "on_start", "agents"),
        ("*, a, message", "after_agent", "a"),
        ("context, *, b=1", "update_agent_state", "context"),
        ("one, agent, two, c", "update_agent_state", "one, two and c"),
        ("*args, key, **more", "process_message_before_send", "key"),
        ("messages, /", "process_all_messages_before_reply", "messages"),
    ],
)
def test_HOOK003_requires_what_it_is_not_given(signature: str, hook_type: str, lacking: str):
    hit = only("HOOK003", watching(signature, hook_type))
    assert hit.path == ("hooks", 0, "function")
    assert hit.message == f"{hook_type} calls watch without {lacking}, which it requires"
    first = lacking.partition(",")[0]
    assert hit.place == Place("hooks/watch.py", 1, 11 + signature.index(first))


def test_HOOK003_says_what_it_is_given():
    hit = only("HOOK003", watching("text", "on_fail"))
    taken = "context_variables, messages, message, content, agent, sender, recipient and silent"
    assert hit.cause == (f"it may take {taken}",)
    assert hit.hint == ("name one of these, or give the parameter a default value",)
    assert only("HOOK003", watching("mesage", "on_fail")).hint == ('did you mean "message"?',)
    hit = only("HOOK003", watching("context", "before_agent"))
    assert "sender, recipient and silent" in hit.cause[0]
    assert hit.hint == ('did you mean "context_variables"?',)


@pytest.mark.parametrize("hook_type", IN_RUN)
def test_HOOK003_what_is_given_for_the_run(hook_type: str):
    taken = "context_variables, messages, message, content, a=1, *, b=2, **c"
    assert codes(watching(taken, hook_type)) == []


@pytest.mark.parametrize("hook_type", IN_TURN)
def test_HOOK003_what_is_given_for_a_turn(hook_type: str):
    taken = "sender, message, recipient, silent, agent, messages, content, context_variables"
    assert codes(watching(taken, hook_type)) == []
    assert codes(watching("", hook_type)) == []


def test_HOOK003_a_decorator_may_change_everything():
    assert hits("HOOK003", watching("a, b, c", "before_chat", before="@wrapped\n")) == []


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
