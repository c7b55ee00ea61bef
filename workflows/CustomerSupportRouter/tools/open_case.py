"""Opens a case for the people of the support team."""

import hashlib


def open_case(summary: str, context_variables) -> dict[str, object]:
    """Store the case and return it with the number by which the customer can refer to it."""
    chat = str(context_variables.get("chat_id"))
    number = "C-" + hashlib.sha256(chat.encode()).hexdigest()[:8].upper()
    case = {"case_number": number, "status": "open", "summary": summary}
    context_variables.set("support_case", case)
    return case
