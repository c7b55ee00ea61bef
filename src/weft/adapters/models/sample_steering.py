"""Steering: which moves of which agents make the runs of a workflow go on, and come to an end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.adapters.models.sample_moves import Move, Places, Step, steps_of
from weft.adapters.models.sample_ways import find_ways
from weft.engine.compiled import CompiledWorkflow

Moves: TypeAlias = Mapping[str, tuple[Move, ...]]

#: How many turns an agent looks around before it makes for the end, if there is time for it.
_LOOK_AROUND: Final = 2


@dataclass(frozen=True, slots=True)
class Steering:
    """What an agent may do that matters to the rules, and which of that leads to the end.

    `ways` come in groups, those needed first in front; one of a group will do. `answers` says, by
    tool, what people may answer that leads on. An agent makes for the end once it has spoken
    `wandering` times.
    """

    moves: Moves = field(default_factory=dict[str, tuple[Move, ...]])
    ways: Mapping[str, tuple[tuple[Move, ...], ...]] = field(
        default_factory=dict[str, tuple[tuple[Move, ...], ...]]
    )
    answers: Mapping[str, tuple[Places, ...]] = field(default_factory=dict[str, tuple[Places, ...]])
    wandering: int = _LOOK_AROUND


def steering_of(compiled: CompiledWorkflow) -> Steering:
    """Work out how to bring the runs of a workflow to an end within their turns."""
    steps = steps_of(compiled)
    found = find_ways(compiled, steps)
    everything = {agent: (kept,) for agent, kept in steps.items()}
    ways = everything if found.turns is None else found.steps
    answers: dict[str, list[Places]] = {}
    for step in (it for groups in ways.values() for kept in groups for it in kept):
        known = answers.setdefault(step.move.what, []) if step.answer else []
        known += [step.answer] if step.answer not in known else []
    # Every agent may look around, and each time the way back may take as long as the whole way.
    spare = compiled.orchestrator.max_turns - 2 * (found.turns or 0)
    return Steering(
        moves={agent: _moves(kept) for agent, kept in steps.items()},
        ways={agent: tuple(_moves(it) for it in groups) for agent, groups in ways.items()},
        answers={tool: tuple(known) for tool, known in answers.items()},
        wandering=max(0, min(_LOOK_AROUND, spare // (2 * len(compiled.agents)))),
    )


def _moves(steps: Sequence[Step]) -> tuple[Move, ...]:
    """Return each move once: several steps may be the same to the agent."""
    moves: list[Move] = []
    for step in steps:
        if step.move not in moves:
            moves.append(step.move)
    return tuple(moves)
