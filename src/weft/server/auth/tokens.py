"""Tokens of an identity provider (OpenID Connect): JSON Web Tokens with fixed algorithms."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, cast

import aiohttp
import jwt

from weft.errors import SetupError, UsageError
from weft.ports.clock import Clock
from weft.server.identity import Principal
from weft.server.settings import Oidc

ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")

#: Milliseconds: keys are read again after this time, for an unknown key id at most this often, and
#: a verified token counts as such for at most this long.
_KEYS_CURRENT: Final = 600_000
_KEYS_AGAIN: Final = 30_000
_TOKEN_CURRENT: Final = 60_000

_KEYS_HINT: Final = "check WEFT_OIDC_ISSUER, or set WEFT_OIDC_JWKS"
_UNREADABLE: Final = (
    aiohttp.ClientError, TimeoutError, KeyError, ValueError, UsageError, jwt.PyJWTError
)  # fmt: skip

_log: Final = logging.getLogger("weft.server")

_SECONDS: Final = 10
_MOST_TOKENS: Final = 10_000


class TokenVerifier:
    """Verifies tokens of one issuer."""

    def __init__(self, oidc: Oidc, clock: Clock) -> None:
        self._oidc = oidc
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at: int | None = None
        self._failure = f"the keys of {oidc.issuer} are not read yet"
        self._reading = asyncio.Lock()
        #: Verified tokens by their hash, each with the time until which it counts.
        self._verified: dict[bytes, tuple[int, Principal]] = {}

    async def verify(self, token: str) -> Principal | None:
        """Return whom a token names; None if it is not valid."""
        now = self._clock.now()
        hashed = sha256(token.encode()).digest()
        known = self._verified.get(hashed)
        if known is not None and now < known[0]:
            return known[1]
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(str(header.get("kid", "")), now)
            if key is None or header.get("alg") not in ALGORITHMS:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                issuer=self._oidc.issuer,
                audience=self._oidc.audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None
        principal = self._principal(claims)
        if principal is None:
            return None
        if len(self._verified) >= _MOST_TOKENS:
            self._verified.clear()
        until = min(int(claims["exp"]) * 1000, now + _TOKEN_CURRENT)
        self._verified[hashed] = until, principal
        return principal

    def _principal(self, claims: Mapping[str, Any]) -> Principal | None:
        app, user = claims.get(self._oidc.app_claim), claims["sub"]
        if not isinstance(app, str) or not app or not user:
            return None
        roles = _names(claims.get(self._oidc.roles_claim)) or ("end_user",)
        return Principal(
            app, str(user), frozenset(roles), tuple(_names(claims.get(self._oidc.groups_claim)))
        )

    async def _key(self, kid: str, now: int) -> jwt.PyJWK | None:
        """Return a key by its id; only who names an unknown one waits while keys are read."""
        if self._is_due(kid, now) or self._found(kid) is None:
            async with self._reading:
                if self._is_due(kid, now):
                    self._read_at = (
                        now  # Also if it fails: the provider is not asked again at once.
                    )
                    await self._refresh()
            if not self._keys:
                raise SetupError(self._failure, hint=_KEYS_HINT)
        return self._found(kid)

    def _found(self, kid: str) -> jwt.PyJWK | None:
        if not kid and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _is_due(self, kid: str, now: int) -> bool:
        """Tell whether the keys are to be read: they are old, or one is not among them."""
        if self._read_at is None:
            return True
        is_known = self._found(kid) is not None
        return now - self._read_at >= (_KEYS_CURRENT if is_known else _KEYS_AGAIN)

    async def _refresh(self) -> None:
        """Read the keys; those that are known remain if it fails."""
        try:
            self._keys = await self._read_keys()
        except _UNREADABLE as error:
            why = str(error) or type(error).__name__
            self._failure = f"the keys of {self._oidc.issuer} cannot be read: {why}"
            _log.warning("%s", self._failure)

    async def _read_keys(self) -> dict[str, jwt.PyJWK]:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as client:
            address = self._oidc.jwks
            if not address:
                where = f"{self._oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
                address = str((await _json(client, where))["jwks_uri"])
            found = jwt.PyJWKSet.from_dict(await _json(client, address))
        return {key.key_id or "": key for key in found.keys}


async def _json(client: aiohttp.ClientSession, address: str) -> dict[str, Any]:
    async with client.get(address) as answer:
        answer.raise_for_status()
        found: object = await answer.json(content_type=None)
    if not isinstance(found, dict):
        raise UsageError(f"{address} is not a JSON object")
    return cast("dict[str, Any]", found)


def _names(claim: object) -> Sequence[str]:
    """Return the names of a claim: a list, or a text with spaces between them."""
    if isinstance(claim, str):
        return claim.split()
    if isinstance(claim, list):
        return [name for name in cast("list[object]", claim) if isinstance(name, str) and name]
    return ()
