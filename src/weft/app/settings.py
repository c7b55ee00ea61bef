"""Settings from environment variables, validated when they are read."""

import math
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final, NamedTuple, get_args

from weft.adapters.documents.requests import TENANT_FIELD
from weft.adapters.models.limits import RETRIES, RetryPolicy
from weft.adapters.models.registry import CallRules
from weft.adapters.python_tools.calling import Limits
from weft.errors import UsageError
from weft.ports.store import Durability

_CALLS: Final = CallRules()


class Setting(NamedTuple):
    """The purpose of an environment variable, and its default."""

    purpose: str
    default: str = "not set"


#: Every setting except the keys and addresses of model providers; docs/settings.md lists both.
SETTINGS: Final = {
    "WEFT_MODEL": Setting("the model where neither the command nor the package names one"),
    "WEFT_FALLBACK_MODEL": Setting(
        "the model that replies when another one fails: MODEL, or pairs MODEL=OTHER"
    ),
    "WEFT_MODEL_KEYS": Setting("keys of servers that are named by address: HOST:PORT=KEY, ..."),
    "WEFT_MODEL_TIMEOUT": Setting(
        "seconds without any output after which a model call fails", f"{_CALLS.seconds:g}"
    ),
    "WEFT_MODEL_ATTEMPTS": Setting("attempts per model call", f"{RETRIES.attempts}"),
    "WEFT_MODEL_CONCURRENCY": Setting("concurrent calls of one model", f"{_CALLS.at_once}"),
    "WEFT_TOOL_TIMEOUT": Setting(
        "seconds a tool call may take, unless the tool sets its own limit; and the import of code",
        f"{Limits().timeout:g}",
    ),
    "WEFT_ALLOW_HOSTS": Setting("private hosts that services may use: HOST or HOST:PORT, ..."),
    "ENVIRONMENT": Setting(
        "`production`: hide variables from the environment and check strictly", "development"
    ),
    "CONTEXT_INCLUDE_SCHEMA": Setting("`0`: hide variables from databases", "1"),
    "CONTEXT_VERBOSE_DEBUG": Setting("`1`: log every change of a variable", "0"),
    "WEFT_DURABILITY": Setting(
        "`full`: an event is on disk before its effect starts; `normal`: written to the OS", "full"
    ),
    "WEFT_STORE": Setting(
        "where runs are stored: a file or postgresql://HOST/DATABASE",
        ".weft/journal.db of the workspace",
    ),
    "WEFT_SERVER": Setting(
        "the server that `weft run`, `chat`, `runs`, `inspect`, `replay`, `top` and `doctor` use"
    ),
    "WEFT_SERVER_KEY": Setting("the key for this server", "the one of a server of the workspace"),
    "WEFT_SIGNAL": Setting(
        "nats://HOST:PORT wakes workers and carries streamed text between processes",
        "NOTIFY of PostgreSQL; sockets beside a file",
    ),
    "WEFT_VAULT_KEY": Setting(
        "64 hexadecimal digits: encrypts secret answers on their way to another process"
    ),
    "WEFT_DOCUMENTS": Setting(
        "where documents are stored: a file, mongodb://HOST/DATABASE or postgresql://HOST/DATABASE",
        "the PostgreSQL of WEFT_STORE, else .weft/documents.db of the workspace",
    ),
    "WEFT_DOCUMENTS_TENANT_FIELD": Setting(
        "the field of a document that names its tenant", TENANT_FIELD
    ),
    "WEFT_EMBEDDINGS": Setting(
        "the embedding model: local, PROVIDER:MODEL, URL#MODEL, or none",
        "local if installed, else none",
    ),
    "WEFT_CACHE": Setting("the folder of installed models", "the user's cache folder"),
    "WEFT_HOST": Setting("the address that `weft serve` listens on", "127.0.0.1"),
    "WEFT_PORT": Setting("the port that `weft serve` listens on", "8765"),
    "WEFT_HOSTS": Setting("host names that `weft serve` answers to, besides loopback: NAME, ..."),
    "WEFT_ORIGINS": Setting("origins of other pages that may call the server: https://HOST, ..."),
    "WEFT_OIDC_ISSUER": Setting("the identity provider of the tokens that the server accepts"),
    "WEFT_OIDC_AUDIENCE": Setting("the audience that tokens must name"),
    "WEFT_OIDC_JWKS": Setting("the address of the provider's keys", "the one it publishes"),
    "WEFT_OIDC_APP_CLAIM": Setting("the claim that names the tenant", "app"),
    "WEFT_OIDC_ROLES_CLAIM": Setting("the claim that has the roles", "roles"),
    "WEFT_OIDC_GROUPS_CLAIM": Setting("the claim that has the groups", "groups"),
}

#: The key of the fallback for models without their own.
ANY_MODEL: Final = "*"

_HOST: Final = re.compile(
    r"(?:(?P<name>[a-z0-9_.-]+)|\[(?P<address>[^]]+)\])(?::(?P<port>[0-9]+))?"
)
_LAST_PORT: Final = 65_535


def call_rules(settings: Mapping[str, str]) -> CallRules:
    """Return the limits and retries of model calls."""
    usual = CallRules()
    return CallRules(
        seconds=_number(settings, "WEFT_MODEL_TIMEOUT", usual.seconds),
        at_once=_count(settings, "WEFT_MODEL_CONCURRENCY", usual.at_once),
        retries=RetryPolicy(attempts=_count(settings, "WEFT_MODEL_ATTEMPTS", RETRIES.attempts)),
    )


def fallbacks_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the fallback models by model name, or for all models under ANY_MODEL.

    >>> fallbacks_of({"WEFT_FALLBACK_MODEL": "sample, openai:a=openai:b"})
    {'*': 'sample', 'openai:a': 'openai:b'}
    """
    found: dict[str, str] = {}
    text = settings.get("WEFT_FALLBACK_MODEL")
    for part in text.split(",") if text else ():
        name, pair, other = (piece.strip() for piece in part.rpartition("="))
        if not other or (pair and not name):
            raise UsageError(
                f"WEFT_FALLBACK_MODEL is a model, or pairs of models, not {text!r}",
                hint="write MODEL, or MODEL=OTHER,MODEL=OTHER",
            )
        if (name or ANY_MODEL) in found:
            whom = name or "any model"
            raise UsageError(f"WEFT_FALLBACK_MODEL names two fallbacks for {whom}: {text!r}")
        found[name or ANY_MODEL] = other
    return found


def tool_limits(settings: Mapping[str, str]) -> Limits:
    """Return the time limits of tools."""
    return Limits(timeout=_number(settings, "WEFT_TOOL_TIMEOUT", Limits().timeout))


def allowed_hosts(settings: Mapping[str, str]) -> frozenset[str]:
    """Return the hosts that services may use although their addresses are private.

    >>> sorted(allowed_hosts({"WEFT_ALLOW_HOSTS": "Orders.internal, [::1]:8080"}))
    ['[::1]:8080', 'orders.internal']
    """
    text = settings.get("WEFT_ALLOW_HOSTS")
    return (
        frozenset(_host(host.strip().lower()) for host in text.split(",")) if text else frozenset()
    )


def durability_of(settings: Mapping[str, str], given: str | None = None) -> Durability:
    """Return the durability of events; the argument of the program wins over the setting."""
    text = settings.get("WEFT_DURABILITY") or "full" if given is None else given
    for known in get_args(Durability):
        if text == known:
            return known
    name = "WEFT_DURABILITY" if given is None else "durability"
    raise UsageError(f"{name} is full or normal, not {text!r}")


def cache_folder(settings: Mapping[str, str]) -> Path:
    """Return the folder of files that can be downloaded again."""
    if settings.get("WEFT_CACHE"):
        return Path(settings["WEFT_CACHE"])
    usual = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    base = settings.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / usual) / "weft"


def _host(text: str) -> str:
    """Return a host as a URL shows it."""
    found = _HOST.fullmatch(text)
    if found and int(found["port"] or 0) <= _LAST_PORT:
        with suppress(ValueError):
            name = found["name"] or f"[{IPv6Address(found['address']).compressed}]"
            return f"{name}:{int(found['port'])}" if found["port"] else name
    raise UsageError(
        f"WEFT_ALLOW_HOSTS has an invalid host: {text!r}",
        hint="write HOST or HOST:PORT, with commas between them and IPv6 in brackets",
    )


def _number(settings: Mapping[str, str], name: str, usual: float) -> float:
    text = settings.get(name)
    if not text:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"{name} is a number of seconds above 0, not {text!r}")
    return number


def _count(settings: Mapping[str, str], name: str, usual: int) -> int:
    text = settings.get(name)
    if not text:
        return usual
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{name} is a whole number from 1 on, not {text!r}")
    return int(text)
