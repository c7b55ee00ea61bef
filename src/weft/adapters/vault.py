"""Vaults: in memory for one process, and encrypted in a store that several processes share."""

import logging
import os
from collections.abc import Sequence
from typing import Final, Protocol

from pydantic_core import from_json, to_json

from weft.errors import SetupError, UsageError
from weft.findings import Json
from weft.ports.store import RunKey
from weft.ports.vault import SecretAnswer

_LOG: Final = logging.getLogger("weft.vault")

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class MemoryVault:
    """Holds secret answers in memory: a call that is repeated in another process asks again."""

    is_local = True

    def __init__(self) -> None:
        self._answers: dict[RunKey, dict[str, SecretAnswer]] = {}

    async def put(self, run: RunKey, request: str, answer: SecretAnswer) -> None:
        """Store the answer to a request, or replace it."""
        self._answers.setdefault(run, {})[request] = answer

    async def get(self, run: RunKey, prefix: str) -> dict[str, SecretAnswer]:
        """Return the answers to all requests whose ids begin with `prefix`."""
        answers = self._answers.get(run, {})
        return {name: answer for name, answer in answers.items() if name.startswith(prefix)}

    async def drop(self, run: RunKey, prefix: str = "") -> None:
        """Delete the answers to all requests whose ids begin with `prefix`."""
        for request in await self.get(run, prefix):
            del self._answers[run][request]
        if not self._answers.get(run, True):
            del self._answers[run]


class SecretRows(Protocol):
    """Stores bytes by run and request."""

    async def put_secret(self, run: RunKey, request: str, content: bytes) -> None: ...

    async def secrets(self, run: RunKey, prefix: str) -> Sequence[tuple[str, bytes]]: ...

    async def drop_secrets(self, run: RunKey, prefix: str) -> None: ...


class EncryptedVault:
    """Encrypts secret answers with AES-GCM; each is bound to its run and request."""

    is_local = False

    def __init__(self, rows: SecretRows, key: bytes) -> None:
        # cryptography takes 40 ms to import, and few programs have secret fields.
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
        except ImportError as error:
            raise SetupError(
                "secret answers are encrypted by a library that is not installed",
                hint='pip install "weft-agents[vault]"',
            ) from error
        self._rows = rows
        self._cipher = AESGCM(key)
        self._invalid = InvalidTag

    async def put(self, run: RunKey, request: str, answer: SecretAnswer) -> None:
        """Encrypt and store the answer to a request, or replace it."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, to_json(list(answer)), _place(run, request))
        await self._rows.put_secret(run, request, nonce + sealed)

    async def get(self, run: RunKey, prefix: str) -> dict[str, SecretAnswer]:
        """Return the answers to all requests whose ids begin with `prefix`."""
        found: dict[str, SecretAnswer] = {}
        for request, content in await self._rows.secrets(run, prefix):
            nonce, sealed = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
            try:
                opened = self._cipher.decrypt(nonce, sealed, _place(run, request))
            except self._invalid:
                # Like an answer that is gone: the call asks for it again.
                _LOG.warning("the secret answer to %s was encrypted with another key", request)
                continue
            value, secrets = from_json(opened)
            found[request] = SecretAnswer(value, tuple(secrets))
        return found

    async def drop(self, run: RunKey, prefix: str = "") -> None:
        """Delete the answers to all requests whose ids begin with `prefix`."""
        await self._rows.drop_secrets(run, prefix)


def read_vault_key(text: str) -> bytes:
    """Return the key that a setting spells in hexadecimal digits.

    >>> len(read_vault_key("0f" * 32))
    32
    """
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError(
            f"WEFT_VAULT_KEY must have {KEY_BYTES * 2} hexadecimal digits",
            hint='make one with: python -c "import secrets; print(secrets.token_hex(32))"',
        )
    return key


def _place(run: RunKey, request: str) -> bytes:
    """Return what the cipher text is bound to, so that no row can be moved to another place."""
    places: list[Json] = [*run, request]
    return to_json(places)
