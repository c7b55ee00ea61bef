"""The code of hooks: what an agent is told beside its prompt, and messages made tidy."""

from collections.abc import Callable, Mapping
from typing import Final

from weft.generator.code.boundaries import boundary_function
from weft.generator.code.python_text import Piece, docstring, module, one_line, string
from weft.spec.tools import Hook
from weft.spec.workflow import WorkflowSpec

#: Words of a purpose that ask for numbers and addresses to be hidden.
_HIDING: Final = ("mask", "redact", "hide", "hiding", "anonymi", "personal", "sensitive", "private")

_RE: Final = frozenset({("re", "")})
_JSON: Final = frozenset({("json", "")})
_TIDY: Final = '''\
def _tidy(text: str) -> str:
    """Return a text without blanks at the ends of lines, and with one empty line at most."""
    lines = "\\n".join(line.rstrip() for line in text.strip().splitlines())
    return re.sub(r"\\n{3,}", "\\n\\n", lines)
'''
#: In a structured reply, texts only: its numbers must stay numbers.
_HIDE_TEXTS: Final = '''\
def _hide_texts(reply: str) -> str:
    """Return JSON whose texts are without e-mail addresses and long numbers."""
    texts = re.compile(r'"(?:[^"\\\\]|\\\\.)*"')
    return texts.sub(lambda text: json.dumps(_hide(json.loads(text[0]))), reply)
'''
_HIDE: Final = '''\
def _hide(text: str) -> str:
    """Return a text without e-mail addresses and long numbers."""
    without = re.sub(r"[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+", "(address)", text)
    return re.sub(r"\\d(?:[ -]?\\d){8,}", "(number)", without)
'''


def hook_files(spec: WorkflowSpec) -> dict[str, str]:
    """Return the files of all hooks, by path."""
    pieces: dict[str, tuple[str, dict[str, Piece]]] = {}
    for hook in spec.hooks:
        path = f"hooks/{hook.file.removeprefix('hooks/')}"
        _, found = pieces.setdefault(path, (hook.description, {}))
        if hook.function not in found:
            write = _WRITERS.get(hook.hook_type)
            found[hook.function] = (
                write(hook, spec) if write else boundary_function(hook, hook.hook_type, spec)
            )
    return {path: module(doc, [*found.values()]) for path, (doc, found) in pieces.items()}


def _function(hook: Hook, parameters: str, returns: str, body: str) -> str:
    doc = docstring(hook.description, f"Called at {hook.hook_type}.")
    return f"def {hook.function}({parameters}) -> {returns}:\n{doc}    {body}\n"


def _agent_state(hook: Hook, _: WorkflowSpec) -> Piece:
    told = string("Also: " + (one_line(hook.description) or "keep to your task."))
    body = f'agent.update_system_message(agent.system_message + "\\n\\n" + {told})'
    return Piece(_function(hook, "agent, messages: list", "None", body))


def _message_sent(hook: Hook, spec: WorkflowSpec) -> Piece:
    change, helpers = _change(hook, spec, "message")
    text = _function(hook, "sender, message: str, recipient, silent: bool", "str", change)
    return _piece(text, helpers)


def _last_message(hook: Hook, spec: WorkflowSpec) -> Piece:
    change, helpers = _change(hook, spec, "content")
    text = _function(hook, "content: str", "str | None", f"{change} if content else None")
    return _piece(text, helpers)


def _all_messages(hook: Hook, spec: WorkflowSpec) -> Piece:
    change, helpers = _change(hook, spec, 'it["content"]')
    changed = change.removeprefix("return ")
    body = (
        "return [\n"
        f'        {{**it, "content": {changed}}} if it.get("content") else it\n'
        "        for it in messages\n"
        "    ]"
    )
    return _piece(_function(hook, "messages: list", "list", body), helpers)


def _piece(text: str, helpers: Mapping[str, str]) -> Piece:
    return Piece(text, _RE | _JSON if "_hide_texts" in helpers else _RE, helpers)


def _change(hook: Hook, spec: WorkflowSpec, text: str) -> tuple[str, Mapping[str, str]]:
    """Return the line that gives a text back, and the helpers it calls."""
    purpose = f"{hook.function} {hook.description}".lower()
    hides = any(it in purpose for it in _HIDING)
    says = hook.agent is not None and hook.hook_type == "process_message_before_send"
    if hides and says and _is_structured(hook, spec):
        return f"return _hide_texts({text})", {"_hide": _HIDE, "_hide_texts": _HIDE_TEXTS}
    if hides and not _is_structured(hook, spec):
        return f"return _hide(_tidy({text}))", {"_tidy": _TIDY, "_hide": _HIDE}
    return f"return _tidy({text})", {"_tidy": _TIDY}


def _is_structured(hook: Hook, spec: WorkflowSpec) -> bool:
    """Tell whether it may be given JSON, whose numbers must stay as they are."""
    bound = {it.agent for it in spec.registry if it.model}
    return bool(bound) if hook.agent is None else hook.agent in bound


_WRITERS: Final[Mapping[str, Callable[[Hook, WorkflowSpec], Piece]]] = {
    "update_agent_state": _agent_state,
    "process_message_before_send": _message_sent,
    "process_last_received_message": _last_message,
    "process_all_messages_before_reply": _all_messages,
}
