"""Family HOOK: every declared hook has code that can be called at its moment."""

from collections.abc import Iterator
from typing import Final

from weft.check.code.signatures import Function
from weft.check.rule import rule
from weft.check.rules.declared import (
    hook_entries,
    missing_files,
    missing_functions,
    paths_outside,
    unused_files,
    with_code,
)
from weft.check.spelling import listed
from weft.check.subject import Hit, Subject
from weft.spec.tools import HookType

#: What each kind of hook is called with, in order.
ARGUMENTS: Final[dict[HookType, tuple[str, ...]]] = {
    "before_chat": (),
    "after_chat": (),
    "before_agent": (),
    "after_agent": (),
    "update_agent_state": ("agent", "messages"),
    "process_message_before_send": ("sender", "message", "recipient", "silent"),
    "process_last_received_message": ("messages",),
    "process_all_messages_before_reply": ("messages",),
}


@rule("HOOK001", "hooks", "code")
def file_exists(subject: Subject) -> Iterator[Hit]:
    return missing_files(subject, hook_entries(subject))


@rule("HOOK002", "hooks", "code")
def function_exists(subject: Subject) -> Iterator[Hit]:
    return missing_functions(hook_entries(subject))


@rule("HOOK003", "hooks", "code")
def signature_fits(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(hook_entries(subject)):
        moment = entry.declared.hook_type
        passed = ARGUMENTS[moment]
        fault = None if function.decorated else _misfit(function, len(passed))
        if fault:
            shown = ", ".join(passed)
            yield Hit(
                (*entry.path, "function"),
                f"{moment} calls {function.name}({shown}), but it {fault}",
                hint=(f"write it as def {function.name}({shown}), context_variables may follow",)
                if passed
                else (f"write it as def {function.name}(context_variables) or without parameters",),
                place=module.place(function.spot),
            )


@rule("HOOK004", "tools", "lifecycle_tools", "hooks", "variables", "orchestrator", "flow", "code")
def file_is_used(subject: Subject) -> Iterator[Hit]:
    return unused_files(subject, "hooks", "hooks.json")


@rule("HOOK005", "hooks")
def file_is_inside(subject: Subject) -> Iterator[Hit]:
    return paths_outside(subject, hook_entries(subject))


def _misfit(function: Function, count: int) -> str | None:
    """Say why a function cannot be called with so many arguments; injected ones come by name."""
    own = [one for one in function.parameters if not one.injected]
    positional = [one for one in own if one.kind == "positional"]
    unfilled = [one for one in positional[count:] if one.required]
    unfilled += [one for one in own if one.kind == "keyword" and one.required]
    if unfilled:
        return f"also requires {listed(one.name for one in unfilled)}"
    if len(positional) < count and not any(one.kind == "args" for one in own):
        return f"takes only {len(positional)} of these {count}" if positional else "takes none"
    return None
