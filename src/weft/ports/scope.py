"""Whose data it is: part of every key and every query."""

from dataclasses import dataclass
from typing import Final

from weft.errors import UsageError
from weft.spec.part import name_list

_EXAMPLE: Final = (
    'write weft.Scope("my-app", "ada"), or weft.Scope.operator("my-app") for all its users'
)


@dataclass(frozen=True, slots=True, init=False)
class Scope:
    """A tenant and one of its users. `Scope.operator` covers every user of the tenant."""

    app: str
    #: None only in a scope that `operator` made.
    user: str | None
    #: What else a person answers for: questions may be asked of a role or a group.
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    #: Who acts for all users of a tenant, in a scope that `operator` made.
    operated_by: str = ""

    def __init__(
        self, app: str, user: str, roles: tuple[str, ...] = (), groups: tuple[str, ...] = ()
    ) -> None:
        """Name one user of a tenant, with the roles and groups that this user answers for."""
        if not isinstance(user, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"the user of a scope is a text, not {user!r}", hint=_EXAMPLE)
        self._fill(app, user, roles, groups)
        if not roles and not groups:
            return
        try:
            name_list(roles)
            name_list(groups)
        except ValueError as error:
            raise UsageError(f"the roles and groups of a scope: {error}") from None

    @classmethod
    def operator(cls, app: str, by: str = "") -> "Scope":
        """Return the scope of everything in a tenant. Only its operator may use it.

        What is done in it is recorded as done `by` this user; by default, by the tenant's name.
        """
        scope = object.__new__(cls)
        scope._fill(app, None, (), (), by)
        return scope

    def _fill(
        self,
        app: str,
        user: str | None,
        roles: tuple[str, ...],
        groups: tuple[str, ...],
        operated_by: str = "",
    ) -> None:
        if not isinstance(app, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"the tenant of a scope is a text, not {app!r}", hint=_EXAMPLE)
        fill = object.__setattr__
        fill(self, "app", app)
        fill(self, "user", user)
        fill(self, "roles", roles)
        fill(self, "groups", groups)
        fill(self, "operated_by", operated_by)

    @property
    def actor(self) -> str:
        """The user that is recorded with what is done in this scope."""
        return self.user or self.operated_by or self.app

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
