"""The settings and secrets of tenants: those of all, with the own ones of each in their place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, cast

from weft.errors import UsageError
from weft.packages.workspace import APPS, has_tenant_name
from weft.ports.clock import Clock

#: Begins the variables that have the secrets of one tenant, such as WEFT_SECRETS_MY_SHOP.
SECRETS: Final = "WEFT_SECRETS_"

#: The file of a tenant's folder that has its secrets.
SECRETS_FILE: Final = "secrets.json"

_EXAMPLE: Final = 'write names and values as JSON: {"SHOP_KEY": "..."}'

#: How long settings count as current before their file is looked at again, in milliseconds.
_CURRENT: Final = 1000

#: When a file was last written, and its size; None where there is none.
_Stamp = tuple[int, int] | None


class _Known(NamedTuple):
    looked_at: int
    stamp: _Stamp
    settings: Mapping[str, str]


class TenantSettings:
    """Returns the settings of a tenant: those of all tenants, overlaid with its own.

    The own ones are in `apps/<app>/secrets.json` of the workspace, which is read again when it has
    changed, or in the variable WEFT_SECRETS_<APP>, which replaces the file. No tenant sees the
    variables of the others.
    """

    def __init__(self, workspace: Path | None, settings: Mapping[str, str], clock: Clock) -> None:
        self.shared: Mapping[str, str] = {
            name: value for name, value in settings.items() if not name.startswith(SECRETS)
        }
        self._given = {name: text for name, text in settings.items() if name.startswith(SECRETS)}
        self._workspace = workspace
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def __call__(self, app: str) -> Mapping[str, str]:
        """Return the settings of a tenant, the same mapping until they change.

        Raises UsageError, which quotes no value, if the own ones cannot be read.
        """
        known, now = self._known.get(app), self._clock.now()
        if known is None or not 0 <= now - known.looked_at < _CURRENT:
            known = self._known[app] = self._look(app, known, now)
        return known.settings

    def _look(self, app: str, known: _Known | None, now: int) -> _Known:
        """Look at the file of a tenant, and read it if it has changed."""
        if not has_tenant_name(app):
            return _Known(now, None, self.shared)
        variable = SECRETS + app.upper().replace("-", "_")
        if variable in self._given:  # It cannot change while the process runs.
            return (
                known._replace(looked_at=now)
                if known
                else _Known(now, None, self._with(_read(self._given[variable], variable)))
            )
        file = None if self._workspace is None else self._workspace / APPS / app / SECRETS_FILE
        stamp = _stamp(file) if file else None
        if known is not None and known.stamp == stamp:
            return known._replace(looked_at=now)
        own = _read(file.read_text("utf-8"), str(file)) if file and stamp else {}
        return _Known(now, stamp, self._with(own))

    def _with(self, own: Mapping[str, str]) -> Mapping[str, str]:
        return {**self.shared, **own} if own else self.shared


def _stamp(file: Path) -> _Stamp:
    try:
        found = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size


def _read(text: str, place: str) -> dict[str, str]:
    """Read names and values; an error names the place and no value."""
    try:
        found: object = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(value, str) for value in cast("dict[str, object]", found).values()
    ):
        raise UsageError(f"the secrets in {place} are not a JSON object of texts", hint=_EXAMPLE)
    return cast("dict[str, str]", found)
