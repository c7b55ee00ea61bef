"""Signatures of webhooks: `t=SECONDS,v1=HEX`, an HMAC-SHA256 over the time and the raw body."""

import hmac
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from weft.server.identity import Unauthenticated

SIGNATURE_HEADER: Final = "Weft-Signature"
DELIVERY_HEADER: Final = "Weft-Delivery"

#: Seconds by which the time of a signature may differ from now.
WINDOW: Final = 300

_PART: Final = re.compile(r"(t|v1)=([0-9a-f]{1,128})")


def sign(secret: str, body: bytes, at: int) -> str:
    """Return the header that signs a body at a time in seconds.

    >>> sign("secret", b"{}", 1700000000)[:21]
    't=1700000000,v1=79dcf'
    """
    return f"t={at},v1={_digest(secret, body, str(at))}"


def verify(header: str, body: bytes, secrets: Iterable[str], now: int) -> str:
    """Return the signature in a header that fits a body and one of the secrets.

    A header may have several signatures, as while a sender rotates its secret. Raises
    Unauthenticated.
    """
    parts = [part for text in header.split(",") if (part := _PART.fullmatch(text.strip()))]
    times = [part[2] for part in parts if part[1] == "t" and part[2].isdecimal()]
    given = [part[2] for part in parts if part[1] == "v1"]
    if len(times) != 1 or not given:
        raise Unauthenticated(
            f"{SIGNATURE_HEADER} must be t=SECONDS,v1=HEX",
            hint="sign SECONDS.BODY by HMAC-SHA256 with the secret of the webhook",
        )
    if abs(now - int(times[0])) > WINDOW:
        raise Unauthenticated(
            f"the time of the signature differs by more than {WINDOW} s from that of this server",
            hint="set the clock of the sender, and sign again when the request is repeated",
        )
    found = ""
    for secret in secrets:
        right = _digest(secret, body, times[0])
        for signature in given:
            if hmac.compare_digest(right, signature):
                found = signature
    if not found:
        raise Unauthenticated(
            "the signature does not fit the body and the secret",
            hint="compare the address and the secret; sign the bytes as they are sent",
        )
    return f"{times[0]}.{found}"


def _digest(secret: str, body: bytes, at: str) -> str:
    return hmac.new(secret.encode(), at.encode() + b"." + body, sha256).hexdigest()
