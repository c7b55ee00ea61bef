"""Weft runs teams of language-model agents whose context is a contract."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.errors import Refuse, RetryModel
    from weft.runtime.asking import use_ui_tool
    from weft.runtime.context_variables import Context
    from weft.runtime.tool_options import tool

__all__ = ["Context", "Refuse", "RetryModel", "__version__", "tool", "use_ui_tool"]

__version__ = "0.1.0"

#: Where each public name is defined; it is imported when it is first used.
_HOMES: Final = {
    "Context": "weft.runtime.context_variables",
    "Refuse": "weft.errors",
    "RetryModel": "weft.errors",
    "tool": "weft.runtime.tool_options",
    "use_ui_tool": "weft.runtime.asking",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
