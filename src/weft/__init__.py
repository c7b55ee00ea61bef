"""Weft runs teams of language-model agents whose context is a contract."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.app.flows import run
    from weft.app.hosts import open_host
    from weft.errors import Ask, Refuse, RetryModel
    from weft.ports.scope import Scope
    from weft.runtime.asking import show_ui_tool, use_ui_tool
    from weft.runtime.host import Host
    from weft.runtime.signals import Answer, Stop, UserMessage
    from weft.runtime.tools.context_variables import Context
    from weft.runtime.tools.options import tool

__all__ = [
    "Answer",
    "Ask",
    "Context",
    "Host",
    "Refuse",
    "RetryModel",
    "Scope",
    "Stop",
    "UserMessage",
    "__version__",
    "open_host",
    "run",
    "show_ui_tool",
    "tool",
    "use_ui_tool",
]

__version__ = "0.1.0"

#: Where each public name is defined; it is imported when it is first used.
_HOMES: Final = {
    "Answer": "weft.runtime.signals",
    "Ask": "weft.errors",
    "Context": "weft.runtime.tools.context_variables",
    "Host": "weft.runtime.host",
    "Refuse": "weft.errors",
    "RetryModel": "weft.errors",
    "Scope": "weft.ports.scope",
    "Stop": "weft.runtime.signals",
    "UserMessage": "weft.runtime.signals",
    "open_host": "weft.app.hosts",
    "run": "weft.app.flows",
    "show_ui_tool": "weft.runtime.asking",
    "tool": "weft.runtime.tools.options",
    "use_ui_tool": "weft.runtime.asking",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
