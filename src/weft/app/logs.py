"""The log as JSON: one object per line, with its tenant, run, event and request."""

import json
import logging
import re
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO, TypeAlias, cast, get_args

from weft.errors import UsageError
from weft.runtime.runs.run_tasks import CURRENT
from weft.runtime.variables.json_values import MASK

#: text: warnings for people; json: everything from `info` on, for programs.
LogFormat: TypeAlias = Literal["text", "json"]

#: The id of the request that the current task answers.
REQUEST: Final[ContextVar[str]] = ContextVar("weft_request", default="")

#: Settings whose values are secrets. Shorter values would mask harmless text.
_SECRET: Final = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|HEADERS", re.IGNORECASE)
_SHORTEST: Final = 6
_PASSWORD: Final = re.compile(r"(://[^\s/@:]*):[^\s/]*@")


def log_format(settings: Mapping[str, str], given: LogFormat | None = None) -> LogFormat:
    """Return the format of the log; the option of a command wins over the setting."""
    text = settings.get("WEFT_LOG") or "text" if given is None else given
    for known in get_args(LogFormat):
        if text == known:
            return known
    raise UsageError(f"WEFT_LOG is text or json, not {text!r}")


class JsonLog(logging.Handler):
    """Writes each record as a JSON object in a line of its own."""

    def __init__(self, stream: TextIO, settings: Mapping[str, str]) -> None:
        """Values of `settings` that are secrets are masked."""
        super().__init__()
        self._stream = stream
        self._secrets = sorted(
            {
                value
                for name, value in settings.items()
                if _SECRET.search(name) and len(value) >= _SHORTEST
            },
            key=len,
            reverse=True,
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self._stream.write(json.dumps(self._data(record), ensure_ascii=False, default=str) + "\n")
        self._stream.flush()

    def _data(self, record: logging.LogRecord) -> dict[str, Any]:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        data: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._masked(_message(record)),
        }
        current = CURRENT.get()
        if current is not None:
            data |= {"app": current.app, "run": current.run}
            data |= {"seq": current.seq} if current.seq else {}
        data |= {"request": REQUEST.get()} if REQUEST.get() else {}
        fields: object = getattr(record, "fields", None)
        data |= cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}
        if record.exc_info and record.exc_info[1] is not None:
            data["error"] = self._masked("".join(traceback.format_exception(record.exc_info[1])))
        return data

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return _PASSWORD.sub(r"\1@", text)


def _message(record: logging.LogRecord) -> str:
    """Return the message; if its arguments do not match, both as they are: no caller may fail."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args}"


@contextmanager
def json_logs(stream: TextIO, settings: Mapping[str, str]) -> Generator[None]:
    """Write the log as JSON inside the block: of Weft from `info` on, of libraries warnings."""
    root, own = logging.getLogger(), logging.getLogger("weft")
    handler = JsonLog(stream, settings)
    before, level = own.handlers[:], own.level
    own.handlers[:] = []  # Others would write text between the lines.
    own.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        own.handlers[:] = before
        own.setLevel(level)


def writes_json() -> bool:
    """Return whether the log is written as JSON."""
    return any(isinstance(handler, JsonLog) for handler in logging.getLogger().handlers)
