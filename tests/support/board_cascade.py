"""A board that hosts are closed and killed on: a cascade, gates, joins, batches, collections.

Whatever happens to its hosts, the same artifacts wake the same agents: everything that is made has
a label that says what it was made of, and what waits for several waits for artifacts from outside.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from weft.engine.events import ArtifactArrived, ArtifactPublished, Event, TurnStarted
from weft.runtime.board.evaluation import CONTINUE, EvalContext, EvalInputs, Verdict
from weft.runtime.host import Host
from weft.runtime.workflow import Linking
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel

NAME = "Board"
FIELDS = {"type": "object", "properties": {"label": {"type": "string"}, "k": {"type": "string"}}}


async def pass_on(inputs: EvalInputs, ctx: EvalContext) -> Any:
    """Make of what came something that says so, after a moment."""
    labels = [artifact.payload["label"] for artifact in inputs.artifacts]
    for _ in range(len(labels[0]) % 3):
        await asyncio.sleep(0)
    made = {"Scout": "Lead", "Writer": "Draft"}.get(ctx.agent.name)
    label = f"{'+'.join(labels)}>{ctx.agent.name}"
    return {"type": made, "payload": {"label": label, "k": "k"}} if made else None


class Later:
    """Puts off what is younger than two seconds."""

    def before_schedule(self, ctx: EvalContext, inputs: EvalInputs) -> Verdict:
        """Decide by the time, so that it does not matter how often it is asked."""
        age = ctx.now - max(artifact.created_at for artifact in inputs.artifacts)
        return CONTINUE if age >= timedelta(seconds=2) else Verdict("defer", 2)


OBJECTS: Mapping[str, object] = {"local:pass_on": pass_on, "local:Later": Later}


def _agent(name: str, *consumes: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {
        "agent": name,
        "consumes": consumes,
        "engines": [{"kind": "function", "function": "local:pass_on"}],
        **rest,
    }


def spec(only: Iterable[str] | None = None, **options: Any) -> WorkflowSpec:
    """Return the board, with all of its agents or some."""
    put_off = [{"component": "local:Later", "hooks": ["before_schedule"]}]
    pair = {"types": ["Left", "Right"]}
    agents = [
        _agent("Scout", {"types": ["Seed"]}, publishes=[{"type": "Lead"}]),
        _agent("Writer", {"types": ["Lead"]}, publishes=[{"type": "Draft"}]),
        _agent("Editor", {"types": ["Draft"], "priority": 3}),
        _agent("Gate", pair),
        _agent("Counted", {"types": ["Left", "Left"], "batch": {"size": 2, "timeout_seconds": 9}}),
        _agent("Joined", {**pair, "join": {"by": "k", "within_seconds": 3}}),
        _agent("Nearby", {**pair, "join": {"by": "k", "within_count": 3}}),
        _agent("Patient", {"types": ["Right"]}, components=put_off),
        _agent("Reader", {"types": ["Seed"], "scope": "all"}),
        _agent("Clerk", {"types": ["Draft"], "scope": "partition"}),
        _agent("Pairs", {"types": ["Lead", "Lead"], "scope": "all"}),
    ]
    kept = [agent for agent in agents if only is None or agent["agent"] in only]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": NAME},
            "agents": [{"agent_name": entry["agent"]} for entry in kept],
            "board": {
                "artifacts": [
                    {"name": name, "schema": FIELDS}
                    for name in ("Seed", "Lead", "Draft", "Left", "Right")
                ],
                "agents": kept,
                **options,
            },
        }
    )


def host_of(declared: WorkflowSpec, journal: Any, **ports: Any) -> Host:
    """Return a host for the board."""
    return host_for(
        declared, ScriptedModel([]), store=journal, linking=Linking(objects=OBJECTS), **ports
    )


def labels_of(events: Iterable[Event], run: str) -> dict[str, str]:
    """Return the labels of all artifacts that a run knows of, by their names."""
    found: dict[str, str] = {}
    for event in events:
        data = event.data
        if isinstance(data, ArtifactPublished | ArtifactArrived):
            payload: Any = data.payload
            found[data.id] = payload["label"]
    return found


def handled(events: Iterable[Event], run: str) -> Counter[tuple[str, tuple[str, ...]]]:
    """Say which agents worked on what, put off or not, as often as they did."""
    events = list(events)
    labels = labels_of(events, run)
    return Counter(
        (event.data.agent, tuple(labels[a] for a in event.data.inputs))
        for event in events
        if isinstance(event.data, TurnStarted)
    )
