"""The settings of a workspace: those of its file `weft.toml`, overridden by the environment.

```toml
model = "openai:gpt-5-mini"
store = "postgresql://weft@db/weft"

[oidc]
issuer = "https://login.example.com"
```

`model` is WEFT_MODEL, and `issuer` below `[oidc]` is WEFT_OIDC_ISSUER. Keys of models and other
secrets belong into the environment.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from weft.app.settings import SETTINGS
from weft.environment import read_environment
from weft.errors import UsageError
from weft.ids import nearest

SETTINGS_FILE: Final = "weft.toml"


def read_settings(workspace: Path) -> Mapping[str, str]:
    """Return the settings of a workspace. Raises UsageError if its file is not valid."""
    return {**settings_of_file(workspace), **read_environment()}


def settings_of_file(workspace: Path) -> Mapping[str, str]:
    """Return the settings in the file of a workspace. Raises UsageError if it is not valid."""
    file = workspace / SETTINGS_FILE
    try:
        with file.open("rb") as opened:
            content = tomllib.load(opened)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from error
    return {_setting(file, name): _text(file, name, value) for name, value in _flat(content, "")}


def _flat(content: Mapping[str, Any], before: str) -> Iterator[tuple[str, object]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{before}{name}_")
        else:
            yield f"{before}{name}", value


def _setting(file: Path, name: str) -> str:
    """Return the setting that a name in the file means."""
    known = {setting.removeprefix("WEFT_").lower(): setting for setting in SETTINGS}
    if name in known:
        return known[name]
    near = nearest(name, known)
    raise UsageError(
        f"{file} has an unknown setting: {name}",
        hint=f"did you mean {near}?" if near else "docs/settings.md lists the settings",
    )


def _text(file: Path, name: str, value: object) -> str:
    match value:
        case bool():
            return str(int(value))
        case str() | int() | float():
            return str(value)
        case list() if all(isinstance(part, str) for part in cast("list[object]", value)):
            return ",".join(cast("list[str]", value))
        case _:
            raise UsageError(f"{file}: {name} is a text, a number, true, false or a list of texts")
