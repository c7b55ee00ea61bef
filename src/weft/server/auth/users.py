"""Tenants and their users: what is recorded of them besides keys."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, cast

from weft.errors import UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.records import Record, Records
from weft.server.identity import Principal, Unauthenticated
from weft.server.records import SERVER, RecordCache, delete_all

KIND: Final = "user"

#: The records of tenants that were added, and of those that were deleted: tokens of an identity
#: provider may name them still.
APP_KIND: Final = "app"
DELETED_KIND: Final = "deleted app"


@dataclass(frozen=True, slots=True)
class User:
    """A user of a tenant: roles, groups and labels that come besides those of a key or token."""

    user: str
    roles: tuple[str, ...]
    groups: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass
class Users:
    """Reads and writes tenants and users. A tenant that only tokens name need not be added."""

    records: Records
    clock: Clock
    _known: RecordCache = field(init=False)

    def __post_init__(self) -> None:
        self._known = RecordCache(self.records, self.clock)

    async def add_app(self, app: str) -> None:
        """Add a tenant, also one that was deleted before."""
        await self.records.add_record(SERVER, APP_KIND, app, {})
        self._known.forget(SERVER, APP_KIND, app)

    async def require_app(self, app: str) -> None:
        """Raise UsageError for a tenant that was not added."""
        if await self.records.record(SERVER, APP_KIND, app) is None:
            raise UsageError(f"there is no tenant {app}", hint="add it first: POST /api/apps")

    async def delete_app(self, app: str) -> bool:
        """Delete a tenant and what is recorded of its users; False if it was not added."""
        if await self.records.record(SERVER, APP_KIND, app) is None:
            return False
        await self.records.put_record(SERVER, DELETED_KIND, app, {})
        await self.records.delete_record(SERVER, APP_KIND, app)
        for kind in (APP_KIND, DELETED_KIND):
            self._known.forget(SERVER, kind, app)
        await delete_all(self.records, app, KIND)
        return True

    async def put(self, app: str, user: User) -> None:
        """Write a user."""
        lists = {"roles": user.roles, "groups": user.groups, "labels": user.labels}
        value = {name: _sorted(names) for name, names in lists.items()}
        await self.records.put_record(app, KIND, user.user, value)
        self._known.forget(app, KIND, user.user)

    async def page(self, app: str, *, after: str, limit: int) -> list[User]:
        """Return users by name."""
        found = await self.records.records(app, KIND, after=after, limit=limit)
        return [_user(record) for record in found]

    async def delete(self, app: str, user: str) -> bool:
        """Delete a user, not the keys; False if nothing was written of the user."""
        self._known.forget(app, KIND, user)
        return await self.records.delete_record(app, KIND, user)

    async def with_user(self, principal: Principal) -> Principal:
        """Return a principal with what is recorded of its user; refuse one of a deleted tenant."""
        app = principal.app
        if (
            await self._known.read(SERVER, DELETED_KIND, app) is not None
            and await self._known.read(SERVER, APP_KIND, app) is None
        ):
            raise Unauthenticated("the tenant was deleted")
        record = await self._known.read(app, KIND, principal.user)
        if record is None:
            return principal
        known = _user(record)
        return replace(
            principal,
            roles=principal.roles.union(known.roles),
            groups=tuple(dict.fromkeys((*principal.groups, *known.groups))),
            labels=known.labels,
        )


def _sorted(names: Iterable[str]) -> list[Json]:
    return list[Json](sorted(set(names)))


def _user(record: Record) -> User:
    lists = {name: tuple(cast("list[str]", given)) for name, given in record.value.items()}
    return User(record.key, **lists)
