"""Model settings: those of an agent over those of its workflow, and the seed that a run has."""

import hashlib
import json
from typing import Any, Final

from weft.engine.board.rules import role_of
from weft.engine.flow.plan import roles
from weft.spec.agents import CACHE_SEED, ModelSettings
from weft.spec.workflow import WorkflowSpec

#: Every provider takes seeds of 31 bits; 0 means "none" to some.
_SEEDS: Final = 2**31 - 1


def settings_by_agent(spec: WorkflowSpec) -> dict[str, ModelSettings | None]:
    """Return how the model of each agent is asked; null where nothing is declared."""
    usual = spec.orchestrator.model_settings
    own = {it.agent_name: _merged(usual, it.model_settings) for it in spec.agents}
    for it in spec.board.agents if spec.board else ():
        own |= {role_of(it.agent, engine): own.get(it.agent) for engine in range(len(it.engines))}
    own |= {role: own.get(it.agent) for role, _, it in (roles(spec.flow) if spec.flow else ())}
    return own


def _merged(usual: ModelSettings | None, own: ModelSettings | None) -> ModelSettings | None:
    said = {**declared(usual), **declared(own)}
    return ModelSettings.model_validate(said) if said else None


def declared(settings: ModelSettings | None) -> dict[str, Any]:
    """Return what settings say, by name; what they leave to the provider is not there."""
    return {name: value for name, value in settings or () if value is not None}


def in_run(
    settings: ModelSettings | None, app: str, workflow: str, run: str
) -> ModelSettings | None:
    """Return settings as they are sent in a run: a seed is a number there."""
    if settings is None or settings.seed != CACHE_SEED:
        return settings
    return settings.model_copy(update={"seed": cache_seed(app, workflow, run)})


def cache_seed(app: str, workflow: str, run: str) -> int:
    """Return a number from 1 on that follows from app, workflow and run, and from nothing else."""
    named = json.dumps((app, workflow, run)).encode()
    return int.from_bytes(hashlib.sha256(named).digest()[:8]) % _SEEDS + 1
