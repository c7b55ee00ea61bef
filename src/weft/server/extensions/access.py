"""What the code of an extension is given: the runs and settings of the tenants it serves."""

from collections.abc import Mapping

from weft.app.folders import LOCAL
from weft.engine.rows import OpenRequest, RunRow
from weft.errors import AccessDenied
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Signal


class ExtensionHost:
    """The host as an extension uses it; the methods are those of `weft.Host`.

    The extension of a tenant's own package reaches this tenant only, that of a package of all
    tenants reaches all.
    """

    def __init__(self, host: Host, app: str = "") -> None:
        self._host = host
        self._app = app

    async def start(
        self,
        workflow: str,
        *,
        scope: Scope,
        message: str | None = None,
        values: Mapping[str, Json] | None = None,
        input: Mapping[str, Json] | None = None,  # noqa: A002 - as the host calls it
        run: str | None = None,
    ) -> str:
        """Start a run and return its id."""
        self._require(scope.app)
        return await self._host.start(
            workflow, scope=scope, message=message, values=values, input=input, run=run
        )

    async def deliver(self, run: str, signal: Signal, *, scope: Scope) -> None:
        """Deliver a message, an answer or a stop to a run."""
        self._require(scope.app)
        await self._host.deliver(run, signal, scope=scope)

    async def run(self, run: str, *, scope: Scope) -> RunRow:
        """Return a run as lists show it."""
        self._require(scope.app)
        return await self._host.run(run, scope=scope)

    async def requests(self, *, scope: Scope, run: str | None = None) -> list[OpenRequest]:
        """Return the open questions."""
        self._require(scope.app)
        return list(await self._host.requests(scope=scope, run=run))

    def settings(self, app: str = "") -> Mapping[str, str]:
        """Return the settings and secrets of a tenant; by default those of the package's tenant."""
        wanted = app or self._app or LOCAL.app
        self._require(wanted)
        return self._host.environment_of(wanted)

    def _require(self, app: str) -> None:
        if self._app and app != self._app:
            raise AccessDenied(f"an extension of tenant {self._app} cannot act for tenant {app}")
