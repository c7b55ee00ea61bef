"""The codes of problems: the number is the HTTP status. `weft explain` shows them."""

from functools import partial
from typing import Final

from weft.findings import Rule

_error: Final = partial(Rule, severity="error")

HTTP_RULES: Final = (
    _error(
        code="HTTP400",
        title="Malformed request",
        why="The request is not valid HTTP, or its body is not valid JSON.",
        fix="Send a JSON body with the header `Content-Type: application/json`.",
        example='POST /api/runs        with the body {"workflow": ',
    ),
    _error(
        code="HTTP401",
        title="Not authenticated",
        why="The request has no key, token or session, or one that is not valid any more.",
        fix=(
            "Send `Authorization: Bearer KEY`; `weft keys create` makes a key. A page opens the "
            "address that `weft serve` prints."
        ),
        example="GET /api/runs        without an Authorization header",
    ),
    _error(
        code="HTTP403",
        title="Origin not allowed",
        why="A page of another origin tries to change something with the rights of the user.",
        fix="If the page is yours, add its origin to the setting `WEFT_ORIGINS`.",
        example="POST /api/runs        with the header Origin: https://elsewhere.example",
    ),
    _error(
        code="HTTP404",
        title="Not found",
        why=(
            "There is no such path, run, workflow or record, or the caller may not see it: the "
            "answer is the same."
        ),
        fix="Check the path, the tenant and the user of the key, and its roles.",
        example="GET /api/runs/another-users-run",
    ),
    _error(
        code="HTTP405",
        title="Method not allowed",
        why="The path exists, but not with this method.",
        fix="See `/docs` for the methods of the path.",
        example="DELETE /api/workflows",
    ),
    _error(
        code="HTTP408",
        title="Request too slow",
        why="The header or the body did not arrive in time.",
        fix="Send the request faster; check the network.",
        example="a body of which one byte comes every 10 seconds",
    ),
    _error(
        code="HTTP409",
        title="Too late",
        why="A request was answered already, a run has ended, or the name is taken.",
        fix="Read the present state, and decide again.",
        example="POST /api/runs/RUN/answers/REQUEST        a second time",
    ),
    _error(
        code="HTTP413",
        title="Body too large",
        why="The body has more bytes than this route accepts.",
        fix="Send less at a time.",
        example="POST /api/runs        with 2 MB",
    ),
    _error(
        code="HTTP414",
        title="Address too long",
        why="The address has more bytes than the server accepts.",
        fix="Send values in the body and not in the address.",
        example="GET /api/runs?workflow=aaaa...",
    ),
    _error(
        code="HTTP421",
        title="Unknown host name",
        why=(
            "The Host header names another server. Accepting it would let foreign pages reach "
            "this one under a name of their own."
        ),
        fix="If the name is yours, add it to the setting `WEFT_HOSTS`.",
        example="GET /        with the header Host: attacker.example",
    ),
    _error(
        code="HTTP422",
        title="Invalid request",
        why="The request is understood, but a value is missing or wrong, or a package has errors.",
        fix="Correct what the message, its causes and its findings say.",
        example='POST /api/runs        with the body {"workflow": 3}',
    ),
    _error(
        code="HTTP429",
        title="Too many requests",
        why="The caller has too many connections or commands under way.",
        fix="Close some, or wait.",
        example="opening more sockets than one caller may have",
    ),
    _error(
        code="HTTP431",
        title="Header too large",
        why="The header has more bytes than the server accepts.",
        fix="Send fewer or smaller headers and cookies.",
        example="GET /api/runs        with a cookie of 64 KB",
    ),
    _error(
        code="HTTP500",
        title="Bug in Weft",
        why="The server failed unexpectedly. Nothing is wrong with the request.",
        fix="Please report it, with what the log of the server says at this time.",
        example="GET /api/runs",
    ),
    _error(
        code="HTTP502",
        title="Extension failed",
        why="The code of a router that a package mounts below `/x` raised an exception.",
        fix="Correct the code of the package; the log of the server names the file and the line.",
        example="GET /x/Orders/status",
    ),
    _error(
        code="HTTP503",
        title="Not available now",
        why="The store, a model or another service cannot be used at the moment.",
        fix="Try again later. `GET /api/doctor` and the log say what is wrong.",
        example="POST /api/runs        while the database restarts",
    ),
)
