"""Notes who asks."""

from weft import Context


def note_requester(context_variables: Context) -> None:
    """Note in the request who asks."""
    record = context_variables.get_dict("request", {})
    context_variables.set("request", {**record, "requester": context_variables.user})
