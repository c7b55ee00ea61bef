"""Prepares what the agents are told about the customer."""


def initialize_context(context_variables) -> None:
    """Sum the customer's record up in one line before the chat begins."""
    name = context_variables.get("customer_name")
    tier = context_variables.get("customer_tier")
    context_variables.set("customer_summary", f"{name}, {tier} plan")
