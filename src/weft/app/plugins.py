"""Plug-ins: what other distributions add to Weft, found when a package first asks for it."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Final

from weft.engine.variables.trigger_kinds import TriggerKind
from weft.errors import SetupError

#: The group of entry points whose names are kinds of triggers: `{"type": "x:NAME"}`.
TRIGGERS: Final = "weft.triggers"


def is_installed(module: str) -> bool:
    """Tell whether a module can be imported here, by its first name alone: nothing is imported."""
    try:
        return find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


class PluginTriggers(Mapping[str, TriggerKind]):
    """The kinds of triggers that are installed; looked for when somebody asks."""

    @cached_property
    def _kinds(self) -> dict[str, TriggerKind]:
        found: dict[str, TriggerKind] = {}
        for point in entry_points(group=TRIGGERS):
            try:
                found[point.name] = point.load()()
            except Exception as error:  # the plug-in is somebody else's code
                raise SetupError(
                    f"the trigger x:{point.name} of {point.value} cannot be loaded: {error}",
                    hint="correct or uninstall the distribution that brings it",
                ) from error
        return found

    def __getitem__(self, name: str) -> TriggerKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
