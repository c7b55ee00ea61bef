"""Exploring every way a conversation can go, with the routing of the engine itself.

What triggers declare can happen. What tool code names in a `set` may happen: it counts as a way
out and never causes an error, at most a warning. A condition on something unknown may be true or
false. Beyond the limit of states the exploration says so.
"""

from weft.check.explore.exploration import STATE_LIMIT, EndlessRun, Exploration, UnusedRule, explore

__all__ = ["STATE_LIMIT", "EndlessRun", "Exploration", "UnusedRule", "explore"]
