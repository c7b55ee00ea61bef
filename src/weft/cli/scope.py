"""The tenant and the user of a command: those of the global options --app and --user."""

from contextvars import ContextVar
from shlex import quote
from typing import Final

from weft.app.folders import LOCAL, LOCAL_USER
from weft.cli.failure import usage
from weft.ports.scope import Scope

_scope: Final = ContextVar("scope", default=LOCAL)

#: The options that name the server of the command, whose key says who the command acts for; they
#: are empty if the environment names it. None: the runs are in a store.
_server_options: Final = ContextVar[str | None]("server_options", default=None)


def set_scope(app: str | None, user: str | None) -> None:
    """Set the scope of the command from its options; what is None has its default."""
    for option, name in (("--app", app), ("--user", user)):
        if name is not None and not name.strip():
            raise usage(f"the value of {option} is empty", f"name one: {option} NAME")
    _scope.set(Scope(LOCAL.app if app is None else app, LOCAL_USER if user is None else user))
    _server_options.set(None)


def set_server_scope(scope: Scope, options: str) -> None:
    """Set the scope of the command to the one of its key for a server, which `options` name."""
    if scope_options():
        raise usage("with --server, the key says who you are", "leave out --app and --user")
    _scope.set(scope)
    _server_options.set(options)


def is_on_server() -> bool:
    """Return whether the runs of the command are on a server."""
    return _server_options.get() is not None


def command_scope() -> Scope:
    """Return the tenant and the user that the command acts for."""
    return _scope.get()


def command_user() -> str:
    """Return the user that the command acts for."""
    return command_scope().user or LOCAL_USER


def scope_options(scope: Scope | None = None) -> str:
    """Return the options that give another command this scope, or the same, each after a space.

    On a server these are the options that name the server.
    """
    on_server = _server_options.get()
    if on_server is not None:
        return on_server
    scope = scope or command_scope()
    given = {"--app": (scope.app, LOCAL.app), "--user": (scope.user, LOCAL.user)}
    return "".join(
        f" {option} {quote(str(name))}"
        for option, (name, default) in given.items()
        if name != default
    )
