"""The settings of a server, from the environment and `weft.toml`, overridden by options."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from weft.app.diagnosis import Diagnosis
from weft.app.settings import SETTINGS
from weft.app.settings_file import SETTINGS_FILE, settings_of_file
from weft.app.stores import shown_store
from weft.environment import read_environment
from weft.errors import UsageError

PORT: Final = 8765
#: Addresses that stand for all addresses of a machine.
_EVERY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared
#: These are for commands that use another server.
_OF_CLIENTS: Final = frozenset({"WEFT_SERVER", "WEFT_SERVER_KEY"})
_SECRETS: Final = frozenset({"WEFT_MODEL_KEYS", "WEFT_VAULT_KEY"})

#: Names and keys in addresses.
_CREDENTIALS: Final = re.compile(r"//[^\s,]*@")

_NAME: Final = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]")


@dataclass(frozen=True)
class Limits:
    """What a client may send, in bytes and seconds."""

    header_bytes: int = 32 * 1024
    url_bytes: int = 8 * 1024
    body_bytes: int = 1024 * 1024
    upload_bytes: int = 32 * 1024 * 1024
    frame_bytes: int = 256 * 1024
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    #: Connections without a complete header; beyond it, the oldest of them is closed.
    half_open: int = 500
    #: Open sockets and streams of one caller.
    sockets: int = 4000
    #: Seconds between two pings of a socket, and between two looks whether its caller is still
    #: known.
    heartbeat_seconds: float = 20.0
    identity_seconds: float = 60.0


@dataclass(frozen=True)
class Oidc:
    """Who issues tokens, for whom, and in which claims the tenant and the roles are."""

    issuer: str
    audience: str
    app_claim: str = "app"
    roles_claim: str = "roles"
    groups_claim: str = "groups"
    #: The address of the keys; by default the one that the issuer's configuration names.
    jwks: str = ""


@dataclass(frozen=True)
class ServerSettings:
    """Where a server listens, and whom it answers."""

    host: str = "127.0.0.1"
    port: int = PORT
    #: Names in the Host header that are accepted, besides loopback names.
    hosts: frozenset[str] = frozenset()
    #: Origins of pages that may call, besides the server's own.
    origins: frozenset[str] = frozenset()
    oidc: Oidc | None = None
    limits: Limits = Limits()

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return is_loopback(self.host)

    @property
    def refuses_remote_clients(self) -> bool:
        """Whether other machines can connect, and no name that they use is accepted."""
        return self.host.strip("[]") in _EVERY_ADDRESS and not self.hosts


def server_settings(
    settings: Mapping[str, str], *, host: str | None = None, port: int | None = None
) -> ServerSettings:
    """Return the settings of a server. Raises UsageError for one that is not valid."""
    return ServerSettings(
        host=host or settings.get("WEFT_HOST") or ServerSettings.host,
        port=_port(settings) if port is None else port,
        hosts=frozenset(_names(settings, "WEFT_HOSTS")),
        origins=frozenset(
            part.strip().rstrip("/") for part in _parts(settings.get("WEFT_ORIGINS"))
        ),
        oidc=_oidc(settings),
    )


def is_loopback(host: str) -> bool:
    """Tell whether a name or address is this machine's own.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _port(settings: Mapping[str, str]) -> int:
    text = settings.get("WEFT_PORT") or str(PORT)
    if not text.isdecimal() or int(text) > 65_535:
        raise UsageError(f"WEFT_PORT is a port from 0 to 65535, not {text!r}")
    return int(text)


def _parts(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part.strip()]


def _names(settings: Mapping[str, str], name: str) -> list[str]:
    found = [part.strip().lower() for part in _parts(settings.get(name))]
    for part in found:
        if not _NAME.fullmatch(part):
            raise UsageError(f"{name} has an invalid host name: {part!r}")
    return found


def _oidc(settings: Mapping[str, str]) -> Oidc | None:
    issuer, audience = settings.get("WEFT_OIDC_ISSUER"), settings.get("WEFT_OIDC_AUDIENCE")
    if not issuer and not audience:
        return None
    if not issuer or not audience:
        raise UsageError(
            "WEFT_OIDC_ISSUER and WEFT_OIDC_AUDIENCE belong together: only one of them is set"
        )
    return Oidc(
        issuer,
        audience,
        app_claim=settings.get("WEFT_OIDC_APP_CLAIM") or Oidc.app_claim,
        roles_claim=settings.get("WEFT_OIDC_ROLES_CLAIM") or Oidc.roles_claim,
        groups_claim=settings.get("WEFT_OIDC_GROUPS_CLAIM") or Oidc.groups_claim,
        jwks=settings.get("WEFT_OIDC_JWKS") or "",
    )


def settings_in_force(
    workspace: Path,
    environment: Mapping[str, str],
    settings: ServerSettings,
    *,
    journal: str | None,
    works: bool,
) -> list[Diagnosis]:
    """Return a line for each setting of a server, without secrets."""
    flags = {"WEFT_HOST": settings.host, "WEFT_PORT": str(settings.port), "WEFT_STORE": journal}
    in_file, process = settings_of_file(workspace), read_environment()

    def shown() -> Iterator[tuple[str, str, str]]:
        for name, setting in SETTINGS.items():
            flag, value = flags.get(name), environment.get(name)
            if flag is not None and flag != (value or setting.default):
                yield name, flag, "flag"
            elif not value:
                yield name, setting.default, "default"
            elif name not in process and in_file.get(name) == value:
                yield name, value, SETTINGS_FILE
            else:
                yield name, value, "environment"
        yield "--no-work", "no" if works else "yes", "default" if works else "flag"

    return [
        Diagnosis("ok", name, f"{_masked(name, value, origin)} ({origin})")
        for name, value, origin in shown()
        if name not in _OF_CLIENTS
    ]


def _masked(name: str, value: str, origin: str) -> str:
    if origin == "default":
        return value
    return "***" if name in _SECRETS else _CREDENTIALS.sub("//***@", shown_store(value))
