"""What can be told of a customer."""


def is_upset(message: str) -> bool:
    """Tell whether the customer is upset."""
    return "angry" in message


def is_vip(customer_plan: str) -> bool:
    """Tell whether the customer pays more than others."""
    return customer_plan == "gold"
