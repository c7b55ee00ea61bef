"""Keeps the summary of a case."""

from weft import Context, RetryModel


def keep_summary(summary: str, context_variables: Context) -> str:
    """Keep the summary in the case."""
    if not summary.strip():
        raise RetryModel("write the summary")
    record = context_variables.get_dict("intake_record", {})
    context_variables.set("intake_record", {**record, "summary": summary.strip()})
    return "kept"
