"""Weft runs teams of language-model agents whose context is a contract."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft import errors
    from weft.app.flows import run
    from weft.app.hosts import open_host
    from weft.engine import events
    from weft.engine.events import Event
    from weft.errors import AccessDenied, Ask, Refuse, RetryModel
    from weft.ports.live import ModelRetry, TextDelta, ToolProgress
    from weft.ports.scope import Scope
    from weft.runtime.host import Host
    from weft.runtime.signals import Answer, Stop, UserMessage
    from weft.runtime.tools.context_variables import Context
    from weft.runtime.tools.tool_api import show_ui_tool, tool, use_ui_tool

__all__ = [
    "AccessDenied",
    "Answer",
    "Ask",
    "Context",
    "Event",
    "Host",
    "ModelRetry",
    "Refuse",
    "RetryModel",
    "Scope",
    "Stop",
    "TextDelta",
    "ToolProgress",
    "UserMessage",
    "__version__",
    "errors",
    "events",
    "open_host",
    "run",
    "show_ui_tool",
    "tool",
    "use_ui_tool",
]

__version__ = "0.1.0"

#: The module of each public name, which is imported when the name is first used.
_HOMES: Final = {
    "AccessDenied": "weft.errors",
    "Answer": "weft.runtime.signals",
    "Ask": "weft.errors",
    "Context": "weft.runtime.tools.context_variables",
    "Event": "weft.engine.events",
    "Host": "weft.runtime.host",
    "ModelRetry": "weft.ports.live",
    "Refuse": "weft.errors",
    "RetryModel": "weft.errors",
    "Scope": "weft.ports.scope",
    "Stop": "weft.runtime.signals",
    "TextDelta": "weft.ports.live",
    "ToolProgress": "weft.ports.live",
    "UserMessage": "weft.runtime.signals",
    "errors": "weft",
    "events": "weft.engine",
    "open_host": "weft.app.hosts",
    "run": "weft.app.flows",
    "show_ui_tool": "weft.runtime.tools.tool_api",
    "tool": "weft.runtime.tools.tool_api",
    "use_ui_tool": "weft.runtime.tools.tool_api",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Hidden from type checkers, so that they find a name that is not there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'weft' has no attribute {name!r}")
        if name in ("errors", "events"):
            return import_module(f"{home}.{name}")
        return getattr(import_module(home), name)
