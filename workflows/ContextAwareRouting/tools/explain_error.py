"""Says what an HTTP status code means."""

from http import HTTPStatus


def explain_error(code: int) -> dict[str, str]:
    """Return the name of a status code and the side on which to look for the fault."""
    try:
        status = HTTPStatus(code)
    except ValueError:
        return {"name": "unknown", "look_at": "the exact message the user sees"}
    side = "the server" if status.is_server_error else "the request"
    return {"name": status.phrase, "look_at": side}
