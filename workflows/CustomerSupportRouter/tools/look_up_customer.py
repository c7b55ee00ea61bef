"""Finds out who the customer is."""

from typing import Final

# Stands for a directory of customers: name and plan of each user. "me" is whoever uses the CLI.
_CUSTOMERS: Final = {
    "me": ("Ada", "premium"),
    "grace": ("Grace", "basic"),
}


def look_up_customer(context_variables) -> dict[str, str]:
    """Return the customer in one line, and the plan."""
    # Who is signed in is known to the run. A name in the chat is no evidence.
    user = context_variables.get("user_id")
    name, plan = _CUSTOMERS.get(user, ("a guest", "basic"))
    return {"customer": f"{name}, {plan} plan", "plan": plan}
