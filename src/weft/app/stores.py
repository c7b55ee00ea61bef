"""The store of a host: a SQLite file, memory, or PostgreSQL; and what crosses processes with it."""

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.live.merged import MergedLiveStream
from weft.adapters.live.sockets import SocketBus
from weft.adapters.memory.store import MemoryStore
from weft.adapters.sql.sqlite import SqliteStore
from weft.adapters.sql.store import SqlStore
from weft.adapters.vault import EncryptedVault, MemoryVault, read_vault_key
from weft.app.folders import JOURNAL, make_folder, refuse_package
from weft.errors import SetupError, StoreError, UsageError
from weft.ports.clock import Clock
from weft.ports.live import LiveStream
from weft.ports.signal import Signal
from weft.ports.store import Durability, Store
from weft.ports.vault import Vault

POSTGRES: Final = ("postgresql://", "postgres://")
_IN_MEMORY: Final = ":memory:"
#: The record that names a store; no tenant has an empty name.
_NAME: Final = ("", "store", "name")
_PASSWORD: Final = re.compile(r"(://[^/@:]*):[^/]*@")
_PASSWORD_OPTION: Final = re.compile(r"(?<=[?&])\w*password=[^&]*&|[?&]\w*password=[^&]*$")


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store, the live stream between the processes that share it, and their vault."""

    store: Store
    live: LiveStream
    vault: Vault


def is_postgres(address: str | Path | None) -> bool:
    """Return whether an address names a PostgreSQL database."""
    return isinstance(address, str) and address.startswith(POSTGRES)


def store_address(
    settings: Mapping[str, str], workspace: Path | None, journal: str | Path | None
) -> str:
    """Return where runs are stored: as named, as WEFT_STORE says, or in the workspace.

    Without a workspace it is memory.
    """
    address = settings.get("WEFT_STORE", "") if journal is None else str(journal)
    if "://" in address and not is_postgres(address):
        kind = address.partition("://")[0]
        what = "WEFT_STORE" if journal is None else "the journal"
        raise UsageError(
            f"{what} must be a file or an address of PostgreSQL, not {kind}",
            hint="write postgresql://USER@HOST/DATABASE, or the path of a file",
        )
    if address:
        return address
    return _IN_MEMORY if workspace is None else str(workspace / JOURNAL)


def shown_store(address: str) -> str:
    """Return an address without its password.

    >>> shown_store("postgresql://ada:secret@db/weft?sslmode=require&password=secret")
    'postgresql://ada@db/weft?sslmode=require'
    """
    return _PASSWORD_OPTION.sub("", _PASSWORD.sub(r"\1@", address))


async def open_store(
    settings: Mapping[str, str],
    clock: Clock,
    *,
    workspace: Path | None = None,
    journal: str | Path | None = None,
    durability: Durability = "full",
) -> OpenedStore:
    """Open the store of a host, with its live stream and its vault.

    Raises UsageError for settings that can never work, and StoreError if it cannot be opened.
    """
    address = store_address(settings, workspace, journal)
    nats = settings.get("WEFT_SIGNAL", "")
    if nats and not nats.startswith(("nats://", "tls://")):
        raise UsageError(
            f"WEFT_SIGNAL must be an address of NATS, not {nats!r}", hint="write nats://HOST:PORT"
        )
    key = settings.get("WEFT_VAULT_KEY", "")
    secret = read_vault_key(key) if key else b""
    if address == _IN_MEMORY:
        return OpenedStore(MemoryStore(clock), MemoryLiveStream(), MemoryVault())
    if is_postgres(address):
        store, live = await _open_postgres(address, nats, clock, durability)
    else:
        if journal is None and workspace is not None and address == str(workspace / JOURNAL):
            refuse_package(workspace, "runs")
            make_folder(Path(address).parent, "runs")
        make_stream = _load_nats()[1] if nats else None
        store = await SqliteStore.open(Path(address), clock=clock, durability=durability)
        if make_stream is not None:
            live = make_stream(nats, await _name_of(store, clock))
        else:
            live = _stream_beside(Path(address))
    vault = EncryptedVault(store, secret) if secret else MemoryVault()
    return OpenedStore(store, live, vault)


def _stream_beside(file: Path) -> LiveStream:
    """Return the live stream between the processes that use a file."""
    # Windows has no such sockets in Python.
    has_sockets = hasattr(socket, "AF_UNIX")
    return MergedLiveStream(SocketBus(file)) if has_sockets else MemoryLiveStream()


async def _open_postgres(
    url: str, nats: str, clock: Clock, durability: Durability
) -> tuple[SqlStore, LiveStream]:
    # Deferred: optional dependencies.
    try:
        from weft.adapters.sql.postgres import PostgresStore  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "WEFT_STORE names PostgreSQL, whose library is not installed",
            hint='pip install "weft-agents[postgres]"',
        ) from error
    ports = _load_nats() if nats else None
    store = await PostgresStore.open(url, clock=clock, durability=durability)
    if ports is None:
        return store, MergedLiveStream(store.bus())
    make_signal, make_stream = ports
    name = await _name_of(store, clock)
    store.wake_by(make_signal(nats, name))
    return store, make_stream(nats, name)


async def _name_of(store: SqlStore, clock: Clock) -> str:
    """Return the name of a store on a NATS server, which other stores may share.

    It is in the store itself, because processes may reach one store by different addresses.
    """
    try:
        if not await store.record(*_NAME):
            await store.add_record(*_NAME, {"name": f"weft-{clock.new_id()}"})
        record = await store.record(*_NAME)
    except StoreError:
        await store.close()
        raise
    return str(record.value["name"]) if record else ""


def _load_nats() -> tuple[Callable[[str, str], Signal], Callable[[str, str], LiveStream]]:
    """Return what makes a signal and a live stream of an address and the name of a store."""
    try:
        from weft.adapters.nats.bus import NatsBus  # noqa: PLC0415
        from weft.adapters.nats.signal import NatsSignal  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "WEFT_SIGNAL names NATS, whose library is not installed",
            hint='pip install "weft-agents[nats]"',
        ) from error
    return NatsSignal, lambda url, name: MergedLiveStream(NatsBus(url, name))
