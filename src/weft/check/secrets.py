"""Recognising secrets: values and files that do not belong in a package."""

import re
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Final

#: Endings of names whose values are secrets, with the least length of such a value.
_NAMES: Final = (
    (("password", "passwd", "passphrase", "secret"), 4),
    (("api_key", "apikey", "secret_key", "access_key", "private_key", "auth_key"), 8),
    (("token", "bearer", "credential", "credentials"), 12),
)
#: Words of an environment variable's name that say so.
_KEY_WORDS: Final = frozenset(
    {"key", "apikey", "token", "bearer", "secret", "secrets", "password", "passwd", "pass"}
    | {"passphrase", "credential", "credentials"}
)
_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

_SHAPES: Final = (
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), "the key of a model provider"),
    (re.compile(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"), "the key of a payment service"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), "the key of a cloud account"),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{35}"), "the key of a cloud service"),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}"), "the token of a code host"),
    (re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"), "the token of a chat service"),
    (re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"), "a signed access token"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), "a private key"),
    (re.compile(r"://[^/\s:@{}$<]+:[^/\s:@{}$<]+@"), "an address with a password in it"),
)
_PLACEHOLDER: Final = re.compile(
    r"[<\[{$%*]|(?:your|my|the|change[_-]?me|replace|insert|example|sample|dummy|fake|test|none|null"
    r"|env|x+|placeholder|redacted|secret|password|token|key)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9+/_=-]{32,}")

#: Lower-case names of files and folders that hold secrets. Hidden ones are refused as well,
#: by their leading dot: .env, .git, .weft, .ssh, .aws, .netrc, .npmrc, .pypirc and all others.
_FILES: Final = (
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("credential*", "secret.*", "secrets*", "*.env", ".env.*", "_netrc"),
    "service[-_]account*.json",
)


def secret_in(name: str, text: str) -> str | None:
    """Return what kind of secret a text seems to be, judging also by the name of its key."""
    for shape, kind in _SHAPES:
        if shape.search(text):
            return kind
    if _names_a_secret(name, len(text)) and not _PLACEHOLDER.match(text) and " " not in text:
        return f"what {name} is named after"
    if any(_is_random(word) for word in _LONG_WORD.findall(text)):
        return "a key: a long text without any pattern"
    return None


def names_a_key(name: str) -> bool:
    """Return whether the name of an environment variable suggests a secret."""
    return not _KEY_WORDS.isdisjoint(part.lower() for part in _BOUNDARY.split(name))


def _names_a_secret(name: str, length: int) -> bool:
    plain = "_" + "_".join(part for part in _BOUNDARY.split(name) if part).lower()
    return any(
        length >= least and plain.endswith(tuple(f"_{end}" for end in ends))
        for ends, least in _NAMES
    )


def _is_random(word: str) -> bool:
    """Return whether capitals, small letters and digits alternate as often as in a random text."""
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in word]
    changes = sum(left != right for left, right in pairwise(kinds))
    return len(set(kinds)) == 3 and changes * 5 > len(word) * 2


def is_secret_file(path: str) -> bool:
    """Return whether a path, or a folder on it, has a name that is typical of secrets."""
    return any(fnmatchcase(part, pattern) for part in path.lower().split("/") for pattern in _FILES)
