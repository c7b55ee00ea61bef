"""What a program gives a host: refused at once where it is of the wrong kind."""

from collections.abc import Mapping

from weft.errors import UsageError
from weft.ports.scope import Scope


def require_scope(scope: object) -> None:
    """Refuse what cannot say whose data it is."""
    if not isinstance(scope, Scope):
        raise UsageError(
            f"scope is a Scope, not {scope!r}", hint='make one: weft.Scope("my-app", "ada")'
        )


def require_user(scope: Scope) -> None:
    """Refuse to begin something for an empty name: all who forgot theirs would share it."""
    for what, name in (("tenant", scope.app), ("user", scope.user)):
        if name == "":
            raise UsageError(f"the {what} of the scope is empty", hint=f"name the {what}")


def require_text(**given: object) -> None:
    """Refuse what is there and is no text."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} is a text, not {value!r}")


def require_number(**given: object) -> None:
    """Refuse what is there and is no number one can count to."""
    for name, value in given.items():
        counts = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is not None and not counts:
            raise UsageError(f"{name} is a number from 0 on, not {value!r}")


def require_values(values: object) -> None:
    """Refuse what gives no values to variables."""
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(
            f"values are given by variable, not as {values!r}",
            hint='write values={"variable": value}',
        )
