"""Finds out who the customer is."""

from typing import Final

# Replaces a customer database: name and plan of each user. "me" is the user of the CLI.
_CUSTOMERS: Final = {
    "me": ("Ada", "premium"),
    "grace": ("Grace", "basic"),
}


def look_up_customer(context_variables) -> dict[str, str]:
    """Return the customer in one line, and the plan."""
    # The run knows who is signed in. A name in the chat is not evidence.
    user = context_variables.get("user_id")
    name, plan = _CUSTOMERS.get(user, ("a guest", "basic"))
    return {"customer": f"{name}, {plan} plan", "plan": plan}
