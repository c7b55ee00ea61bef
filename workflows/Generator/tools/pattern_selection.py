"""Keeps the first part of the plan: the pattern."""

from weft import Context
from weft.generator.designer.model import brief_of
from weft.generator.designer.patterns import choose_pattern
from weft.generator.judging import accepted


def pattern_selection(
    PatternSelection: dict[str, object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep the part if it holds, and say what speaks for which pattern."""
    output = {"PatternSelection": PatternSelection}
    part = accepted("PatternAgent", output, context_variables)["PatternSelection"]
    context_variables.set("pattern_selection", part)
    return {
        "chosen": [
            f"{workflow['name']}: {workflow['pattern_name']}" for workflow in part["workflows"]
        ],
        "reasons": list(choose_pattern(brief_of(context_variables)).reasons),
    }
