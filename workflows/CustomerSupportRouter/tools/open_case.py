"""Opens a case for the people of the support team."""

import hashlib


def open_case(summary: str, context_variables) -> dict[str, str]:
    """Return the case with the number by which the customer can refer to it."""
    chat = str(context_variables.get("chat_id"))
    number = "C-" + hashlib.sha256(chat.encode()).hexdigest()[:8].upper()
    context_variables.set("case_number", number)
    return {"case_number": number, "status": "open", "summary": summary}
