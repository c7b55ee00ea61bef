"""Who calls: a tenant, a user and roles; and what they may do."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args

from weft.errors import AccessDenied, StoreError, WeftError
from weft.findings import Json
from weft.ports.scope import Scope

#: The roles that the server knows; any other role is one that questions are addressed to.
Role: TypeAlias = Literal["end_user", "developer", "operator", "administrator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

#: Where a route says who may call it.
ROLES_KEY: Final = "x-weft-roles"

#: Everyone who is known; and everyone.
KNOWN: Final[frozenset[Role]] = frozenset(ROLES)
PUBLIC: Final[frozenset[Role]] = frozenset()
ADMINISTRATOR: Final[frozenset[Role]] = frozenset({"administrator"})
DEVELOPER: Final[frozenset[Role]] = frozenset({"developer"})
OPERATOR: Final[frozenset[Role]] = frozenset({"operator"})
#: Who sees more of workflows and runs than what is for end users.
STAFF: Final[frozenset[Role]] = DEVELOPER | OPERATOR


class Unauthenticated(WeftError):
    """A caller that is not known: no key, token or session, or one that is not valid."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Stopping(StoreError):
    """The server is stopping: another one, or this one later, can do what is asked."""

    def __init__(self) -> None:
        super().__init__("the server is stopping", retryable=True)


class TooMany(WeftError):
    """A caller that has too many connections or commands under way."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: a user of a tenant, with the roles of the server and those that questions name."""

    app: str
    user: str
    roles: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Mapping[str, Json]) -> "Principal":
        """Return the principal that is recorded with a key or a session."""
        roles, groups = (cast("list[str]", value[name]) for name in ("roles", "groups"))
        return cls(str(value["app"]), str(value["user"]), frozenset(roles), tuple(groups))

    def has(self, roles: Collection[Role]) -> bool:
        """Tell whether the caller has one of some roles; an administrator has all."""
        return "administrator" in self.roles or not self.roles.isdisjoint(roles)

    @property
    def sees_all(self) -> bool:
        """Whether all runs of the tenant are visible, with variables and prompts."""
        return self.has(("developer",))

    def takes_part(self, user: str) -> bool:
        """Tell whether the caller may read what is said in the runs of a user.

        Operators see what happens in all runs, and what is said only in their own.
        """
        return self.sees_all or not self.has(OPERATOR) or user == self.user

    @property
    def person(self) -> Scope:
        """The scope of the caller as a person: own runs, and questions to this person."""
        addressed = tuple(sorted(self.roles.difference(ROLES)))
        return Scope(self.app, self.user, addressed, self.groups)

    @property
    def scope(self) -> Scope:
        """The scope of what the caller may see."""
        return Scope.operator(self.app, self.user) if self.has(STAFF) else self.person


def authorize(principal: Principal | None, roles: Collection[Role]) -> Principal:
    """Return the caller if one of the roles is theirs: the one check of every route and command.

    Raises Unauthenticated without a caller, and AccessDenied without the role: what a caller may
    not use looks like what does not exist.
    """
    if principal is None:
        raise Unauthenticated("this needs a key, a token or a session")
    if not principal.has(roles):
        raise AccessDenied("not found")
    return principal
