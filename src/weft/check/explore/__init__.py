"""Exploring every possible run of a conversation, with the engine's own routing functions.

Declared triggers can fire. A `set` in tool code may happen: it counts as a way out, but causes at
most a warning, never an error. A condition on something unknown may be true or
false. Above the limit of states the exploration reports that it is not complete.
"""

from weft.check.explore.exploration import STATE_LIMIT, EndlessRun, Exploration, UnusedRule, explore

__all__ = ["STATE_LIMIT", "EndlessRun", "Exploration", "UnusedRule", "explore"]
