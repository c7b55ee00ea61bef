"""The reachability proof: whether a run can come to an end from wherever it can get to."""

from weft.check.proof.unreached import gathered
from weft.check.proof.unused import UnusedRule
from weft.check.proof.verdict import STATE_LIMIT, EndlessRun, Proof, prove

__all__ = ["STATE_LIMIT", "EndlessRun", "Proof", "UnusedRule", "gathered", "prove"]
