"""Whose data it is: part of every key and every query."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """A tenant and, within it, one user; without a user, everything of the tenant."""

    app: str
    user: str | None = None

    def covers(self, app: str, user: str) -> bool:
        """Whether something of this tenant and user may be seen."""
        return self.app == app and self.user in (None, user)
