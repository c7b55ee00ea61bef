"""What the parts of one server share."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weft.app.diagnosis import Diagnosis
from weft.app.folders import LOCAL
from weft.ports.clock import Clock
from weft.ports.records import Records
from weft.runtime.host import Host
from weft.server.auth.authenticator import Authenticator
from weft.server.auth.users import APP_KIND
from weft.server.extensions.watching import Extensions
from weft.server.identity import Principal, Stopping
from weft.server.live.feeds import Feeds
from weft.server.live.ring import Outlet
from weft.server.metrics import Metrics
from weft.server.packages import Packages
from weft.server.page import BuiltPage
from weft.server.problems import Folders
from weft.server.records import SERVER, all_records
from weft.server.settings import ServerSettings
from weft.server.starts.firing import Starts
from weft.server.starts.hooks import Hooks
from weft.server.starts.packages import InstalledPackages

#: The record that is written to see whether the store can write, and for how many seconds it can
#: then be relied on: everyone may ask.
PROBE: Final = "probe"
_PROBE_SECONDS: Final = 3.0


@dataclass
class ServerContext:
    """The host, whom it is opened for, and how callers are known."""

    host: Host
    records: Records
    clock: Clock
    workspace: Path
    settings: ServerSettings
    #: The settings of Weft: those of the environment and of weft.toml.
    environment: Mapping[str, str]
    authenticator: Authenticator
    metrics: Metrics
    #: Whether this process also performs runs.
    works: bool = True
    #: The settings in force, one by one.
    settings_shown: Sequence[Diagnosis] = ()
    #: The web page.
    page: BuiltPage = field(default_factory=BuiltPage)
    is_stopping: bool = False
    #: What is delivered live.
    feeds: Feeds = field(init=False)
    #: The packages of the workspace.
    packages: Packages = field(init=False)
    #: The folders that no answer names.
    folders: Folders = field(init=False)
    #: How runs begin without a person in a chat.
    starts: Starts = field(init=False)
    hooks: Hooks = field(init=False)
    #: The routers and services of packages.
    extensions: Extensions = field(init=False)
    #: By the monotonic clock.
    _writable_until: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.folders = Folders(self.workspace)
        self.feeds = Feeds(self.host, self.settings.limits.sockets)
        self.packages = Packages(self.workspace, self.environment, self.records, self.clock)
        packages = InstalledPackages(self.workspace, self.apps)
        self.starts = Starts(self.host, self.records, self.clock, packages)
        self.hooks = Hooks(self.starts)
        self.extensions = Extensions(self.host, packages, self.workspace)

    def connected(self, caller: Principal) -> AbstractContextManager[Outlet]:
        """Return the outlet of a new connection; raises Stopping and TooMany.

        Clients whose connection was closed come back at once, and would hold up the end.
        """
        if self.is_stopping:
            raise Stopping
        return self.feeds.connected(caller)

    async def has_one_tenant(self) -> bool:
        """Tell whether the server is that of one person: loopback only, and no other tenants."""
        return self.settings.is_loopback and await self.apps() == [LOCAL.app]

    async def may_change_shared_packages(self, caller: Principal) -> bool:
        """Tell whether a caller may change the packages of all tenants."""
        is_local = caller.app == LOCAL.app
        return is_local and (caller.has(()) or await self.has_one_tenant())

    async def apps(self) -> list[str]:
        """Return all tenants."""
        return [
            LOCAL.app,
            *[each.key async for each in all_records(self.records, SERVER, APP_KIND)],
        ]

    async def require_ready(self) -> None:
        """Raise Stopping or another StoreError unless runs can be started and read."""
        if self.is_stopping:
            raise Stopping
        if time.monotonic() >= self._writable_until:
            await self.records.put_record(SERVER, PROBE, LOCAL.app, {})
            self._writable_until = time.monotonic() + _PROBE_SECONDS
