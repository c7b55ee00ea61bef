"""Limits: budgets on what a run may use, and the guard against endless loops."""

from typing import Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Part

BudgetLevel: TypeAlias = Literal["run", "user", "workflow", "tenant"]
Recovery: TypeAlias = Literal[
    "inject_variation", "force_rotation", "synthesize", "decompose", "escalate"
]


class Budget(Part):
    """Ceilings for one level; null means no limit."""

    level: BudgetLevel = "run"
    steps: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    executions: int | None = Field(default=None, ge=1)
    tool_calls: int | None = Field(default=None, ge=1)
    wall_seconds: float | None = Field(default=None, gt=0)
    cost_usd: float | None = Field(default=None, gt=0)
    warn_share: float = Field(
        default=0.8, gt=0, le=1, description="Warn when this share of a ceiling is used."
    )


class LoopGuard(Part):
    """When a run counts as going in circles, and what is done about it, in order."""

    window: int = Field(default=6, ge=3, le=20, description="How many past actions are compared.")
    oscillation: float = Field(default=0.8, gt=0, le=1)
    similarity: float = Field(default=0.85, gt=0, le=1)
    score: float = Field(default=0.7, gt=0, le=1)
    recovery: tuple[Recovery, ...] = ("inject_variation", "escalate")
