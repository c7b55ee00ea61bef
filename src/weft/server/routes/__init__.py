"""The routes of the HTTP API, one module for each noun."""

from typing import Final

from weft.server.routes import (
    admin,
    agents,
    boards,
    documents,
    frame,
    health,
    inspect,
    offers,
    packages,
    plans,
    runs,
    scenarios,
    session,
    setup,
    starts,
    stream,
    webhooks,
    workflows,
)
from weft.server.routing import Routes

ALL_ROUTES: Final[tuple[Routes, ...]] = tuple(
    module.routes
    for module in (
        health, session, admin, runs, stream, inspect, frame, boards, agents, workflows, packages,
        scenarios, starts, documents, plans, offers, setup, webhooks,
    )
)  # fmt: skip
