"""A router for the shop: the state of an order, below /x/OrderIntake."""

from fastapi import APIRouter, Request

from weft import Host, Scope


def get_router(host: Host) -> APIRouter:
    """Return the router; `host` has the methods of weft.Host that start and continue runs."""
    router = APIRouter()

    @router.get("/orders/{run}", openapi_extra={"x-weft-roles": ["operator"]})
    async def order(run: str, request: Request) -> dict[str, str]:
        """Tell how far an order is: operators may ask."""
        scope = Scope(request.state.caller.app, "webhook:OrderIntake")
        row = await host.run(run, scope=scope)
        return {"order": run, "status": row.status}

    return router
