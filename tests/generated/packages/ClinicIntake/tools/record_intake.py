"""Keeps what the patient has told."""

from typing import Literal

from weft import Context


def record_intake(
    symptoms: str,
    medication: list[str],
    status: Literal["more", "complete"],
    context_variables: Context,
) -> dict[str, str]:
    """Keep symptoms and medication; without both the case is not complete."""
    record = context_variables.get_dict("intake_record", {})
    known = {
        **record,
        "symptoms": symptoms.strip() or record.get("symptoms", ""),
        "medication": medication or record.get("medication", []),
    }
    context_variables.set("intake_record", known)
    complete = status == "complete" and bool(known["symptoms"] and known["medication"])
    return {"status": "complete" if complete else "more"}
