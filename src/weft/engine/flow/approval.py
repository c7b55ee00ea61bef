"""Approvals: the approvers are asked in turn; the decision selects the next step."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    TurnEnded,
    TurnFailed,
    VariableSet,
)
from weft.engine.events.kinds import BranchReason
from weft.engine.flow.failure import failure_record
from weft.engine.flow.lanes import fill_template, plan_of, run_of
from weft.engine.flow.plan import APPROVAL, ApprovalPlan
from weft.engine.state import Activation, Request, State
from weft.engine.turn.calls import close_request
from weft.engine.turn.calls import on_request_answered as answer_tool
from weft.engine.turn.calls import on_request_expired as expire_tool
from weft.engine.variables.access import write_error
from weft.findings import Json
from weft.spec.flow import Approval


def ask(state: State, event: Event, active: Activation, approval: Approval) -> list[Command]:
    """Ask for approval: first the approver, then each escalation."""
    level = run_of(active).escalation
    state.update(active.replace(stage="approval"))
    asked = approval.escalate[level - 1] if level else approval
    payload: dict[str, Json] = {
        "step": approval.name,
        "text": fill_template(approval.text, state.values_of(active.number)),
        "options": [option.name for option in approval.options],
    }
    bound = json.dumps([state.run, active.number, asked.approver, payload], sort_keys=True)
    request = RequestOpened(
        id=f"{state.run}:{event.seq}",
        kind="ui",
        agent=approval.name,
        tool=f"{APPROVAL}{approval.name}",
        number=level,
        payload=payload,
        digest=hashlib.sha256(bound.encode()).hexdigest(),
        expires_at=event.at + round(asked.timeout_seconds * 1000),
        sets=() if approval.output is None else (approval.output,),
        component="Approval",
        mode="inline",
        addressee=asked.approver,
    )
    return [Record(request, active.number)]


def _on_answer(
    compiled: CompiledWorkflow, state: State, request: Request, value: Json, user: str
) -> list[Command]:
    """Continue with the decision of a person."""
    active = state.active[request.turn]
    decision = str(cast("Mapping[str, Any]", value)["decision"])
    return _decide(compiled, state, active, decision, f"by {user}")


def _on_expiry(
    compiled: CompiledWorkflow, state: State, event: Event, request: Request
) -> list[Command]:
    """Ask the next approver; after the last, use the declared default or path."""
    active = state.active[request.turn]
    node = cast("ApprovalPlan", plan_of(compiled).nodes[active.step])
    run = run_of(active)
    if run.escalation < len(node.approval.escalate):
        run = replace(run, escalation=run.escalation + 1)
        return ask(state, event, active.replace(flow=run), node.approval)
    if node.approval.default is not None:
        return _decide(compiled, state, active, node.approval.default, "since there was no answer")
    if node.on_timeout:
        return _leave(state, active, (node.on_timeout, "timed_out"))
    return _fail(state, active, "TimeoutError", f"no answer to {active.step} in time", late=True)


def _decide(
    compiled: CompiledWorkflow, state: State, active: Activation, decision: str, by: str
) -> list[Command]:
    node = cast("ApprovalPlan", plan_of(compiled).nodes[active.step])
    name, writes = node.approval.output, list[Command]()
    if name is not None:
        values = state.values_of(active.number)
        fault = write_error(compiled, values, name, decision, active.step)
        if fault is not None:
            return _fail(state, active, "ValueError", f"{active.step}: {fault}")
        write = VariableSet(name, decision, f"step:{active.step}")
        writes.append(Record(write, active.number))
    rejects = any(option.rejects for option in node.approval.options if option.name == decision)
    if not rejects:
        return [*writes, *_leave(state, active, None)]
    if node.on_rejection:
        return [*writes, *_leave(state, active, (node.on_rejection, "rejected"))]
    return [*writes, *_fail(state, active, "Rejected", f"{active.step} was rejected {by}")]


def _leave(
    state: State, active: Activation, branch: tuple[str, BranchReason] | None
) -> list[Command]:
    run = replace(run_of(active), branch=branch)
    state.update(active.replace(stage="ending", flow=run))
    return [Record(TurnEnded(active.agent), active.number)]


def _fail(
    state: State, active: Activation, error: str, told: str, *, late: bool = False
) -> list[Command]:
    failure = failure_record(state, active, error, told)
    kind = "deadline" if late else "rejected"
    return [Record(TurnFailed(active.agent, told, kind, failure), active.number)]


def on_request_answered(
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestAnswered
) -> list[Command]:
    """Continue with the decision of an approver, or with the answer to a tool."""
    if state.requests[data.id].call is not None:
        return answer_tool(compiled, state, event, data)
    return _on_answer(compiled, state, close_request(state, data.id), data.value, data.user)


def on_request_expired(
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestExpired
) -> list[Command]:
    """Ask the next approver, or handle the question of a tool that has expired."""
    if state.requests[data.id].call is not None:
        return expire_tool(compiled, state, event, data)
    return _on_expiry(compiled, state, event, close_request(state, data.id))
