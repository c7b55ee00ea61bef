"""Family HAND."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = ()
