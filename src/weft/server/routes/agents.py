"""Agents of workflows and what they wait for, and the state of correlations."""

from typing import Annotated, Final, Literal

from fastapi import Path, Query
from typing_extensions import TypedDict

from weft.engine.board.correlation import rules_of
from weft.engine.rows import RunRow
from weft.inspect.board import waiting
from weft.ports.scope import Scope
from weft.runtime.workflow import Workflow
from weft.server.actions import PEOPLE
from weft.server.board_view import BoardView
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, Principal
from weft.server.parameters import PRINTABLE, IdPath
from weft.server.routing import Caller, Context, Routes

routes: Final = Routes("boards")

WorkflowQuery = Annotated[str, Query(min_length=1, max_length=200, pattern=PRINTABLE)]

#: How many open runs of a workflow are looked at for what its agents wait for.
_MOST_RUNS: Final = 50


class ArtifactNameAnswer(TypedDict):
    """An artifact by id and type."""

    id: str
    type: str


class WaitingAnswer(TypedDict):
    """What an agent waits for in a run: `for others`, `for a batch`, `for an answer`..."""

    run: str
    what: str
    artifacts: list[ArtifactNameAnswer]


class AgentAnswer(TypedDict):
    """An agent of a workflow."""

    agent: str
    #: The types of artifacts that wake it, and those that it publishes.
    consumes: list[str]
    publishes: list[str]
    labels: list[str]
    #: The runs in which it works now.
    active: list[str]
    waiting: list[WaitingAnswer]


class AgentsAnswer(TypedDict):
    """The agents of a workflow, and how many of its open runs were looked at."""

    items: list[AgentAnswer]
    next: None
    runs: int


class CorrelationAnswer(TypedDict):
    """A correlation: `active` while something is done, `idle` if nothing is, or how it ended."""

    correlation: str
    workflow: str
    status: Literal["active", "idle", "completed", "failed", "cancelled"]
    run: str
    started_at: int
    changed_at: int
    #: How many of its artifacts the caller may see.
    artifacts: int


@routes.add("GET", "/api/agents", roles=DEVELOPER, answer=AgentsAnswer)
async def list_agents(workflow: WorkflowQuery, caller: Caller, context: Context) -> object:
    """List the agents of a workflow, and what they wait for in its newest open runs."""
    host, scope = context.host, caller.scope
    linked = await host.current_workflow(workflow, app=caller.app)
    agents = _agents_of(linked)
    rows = await _open_runs(context, caller, linked.name)
    for row in rows:
        state = await host.state(row.run, scope=scope)
        for turn in state.active.values():
            if turn.agent in agents:
                agents[turn.agent]["active"].append(row.run)
        for request in state.requests.values():
            if request.agent in agents:
                entry = WaitingAnswer(run=row.run, what="for an answer", artifacts=[])
                agents[request.agent]["waiting"].append(entry)
        rules = None if state.board is None else rules_of(linked.compiled).subscriptions
        for record in () if state.board is None else waiting(state.board):
            subscription = (rules or {}).get(record.subscription)
            if subscription is not None:
                found = [ArtifactNameAnswer(id=ref.id, type=ref.type) for ref in record.artifacts]
                entry = WaitingAnswer(run=row.run, what=record.what, artifacts=found)
                agents[subscription.agent]["waiting"].append(entry)
    return {"items": list(agents.values()), "next": None, "runs": len(rows)}


async def _open_runs(context: ServerContext, caller: Principal, workflow: str) -> list[RunRow]:
    found: list[RunRow] = []
    for status in ("running", "waiting"):
        found += await context.host.runs(
            scope=caller.scope, workflow=workflow, status=status, limit=_MOST_RUNS, only_own=True
        )
    found.sort(key=lambda row: row.started_at, reverse=True)
    return found[:_MOST_RUNS]


def _agents_of(workflow: Workflow) -> dict[str, AgentAnswer]:
    """Return the agents of a workflow by name, with what a board declares of them."""
    board = workflow.spec.board
    declared = {agent.agent: agent for agent in board.agents} if board is not None else {}
    found: dict[str, AgentAnswer] = {}
    for name in (agent.agent_name for agent in workflow.spec.agents):
        part = declared.get(name)
        consumed = [type_ for each in part.consumes for type_ in each.types] if part else []
        found[name] = AgentAnswer(
            agent=name,
            consumes=list(dict.fromkeys(consumed)),
            publishes=[each.type for each in part.publishes] if part else [],
            labels=list(part.labels) if part else [],
            active=[],
            waiting=[],
        )
    return found


@routes.add("GET", "/api/correlations/{id}", roles=PEOPLE, answer=CorrelationAnswer)
async def show_correlation(
    id_: Annotated[IdPath, Path(alias="id")],
    workflow: WorkflowQuery,
    caller: Caller,
    context: Context,
) -> object:
    """Say how far a correlation of a board is."""
    board = BoardView(context.host, caller, workflow)
    await board.require()
    newest = (await board.artifacts(correlation=id_, limit=1)).items
    if newest:
        run = newest[0].run
    else:
        await board.require_part(id_)
        run = await context.host.run_of(workflow, id_, scope=board.scope)
    row = await context.host.run(run, scope=Scope.operator(caller.app))
    status = {"running": "active", "waiting": "idle"}.get(row.status, row.outcome)
    # After the status: an idle run publishes nothing.
    total = (await board.artifacts(correlation=id_, limit=1, count=True)).total or 0
    return {
        "correlation": id_,
        "workflow": row.workflow,
        "status": status,
        "run": row.run,
        "started_at": row.started_at,
        "changed_at": row.changed_at,
        "artifacts": total,
    }
