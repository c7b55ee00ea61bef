"""Whose data it is: part of every key and every query."""

from dataclasses import dataclass
from typing import Final

from weft.errors import UsageError
from weft.spec.part import name_list

_EXAMPLE: Final = 'write weft.Scope("my-app", "ada"), or weft.Scope("my-app") for all its users'


@dataclass(frozen=True, slots=True)
class Scope:
    """A tenant and, within it, one user; without a user, everything of the tenant."""

    app: str
    user: str | None = None
    #: What else a person answers for: questions may be asked of a role or a group.
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what names no tenant or no user."""
        if not isinstance(self.app, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"the tenant of a scope is a text, not {self.app!r}", hint=_EXAMPLE)
        if self.user is not None and not isinstance(self.user, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"the user of a scope is a text, not {self.user!r}", hint=_EXAMPLE)
        if not self.roles and not self.groups:
            return
        try:
            name_list(self.roles)
            name_list(self.groups)
        except ValueError as error:
            raise UsageError(f"the roles and groups of a scope: {error}") from None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addressees of questions that are this person's to answer."""
        own = (f"user:{self.user}",) if self.user is not None else ()
        return (*own, *self.shared_addresses)

    @property
    def shared_addresses(self) -> tuple[str, ...]:
        """The roles and groups among the addressees."""
        return (
            *(f"role:{role}" for role in self.roles),
            *(f"group:{group}" for group in self.groups),
        )

    def answers(self, app: str, user: str, addressee: str) -> bool:
        """Whether a question is this person's to answer: one of their own run, or asked of them."""
        if self.app != app or self.user is None:
            return self.app == app
        return addressee in self.addresses if addressee else self.user == user

    def covers(self, app: str, user: str) -> bool:
        """Whether something of this tenant and user may be seen."""
        return self.app == app and self.user in (None, user)
