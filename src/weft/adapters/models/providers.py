"""The model providers that are known by name, and the settings that reach them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from weft.errors import UsageError

#: Keys of servers that are named by their address. A key belongs to a host: a package could name
#: any address, and must not receive the key of another server.
ADDRESS_KEYS: Final = "WEFT_MODEL_KEYS"

_OLLAMA_PORT: Final = 11434


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint: its address, and the settings it is reached with."""

    #: The default address; None if only a setting has one.
    base_url: str | None = None
    #: The setting that overrides it, and a suffix for its value.
    url_setting: str | None = None
    url_ending: str = ""
    #: A setting that names only the host, used where `url_setting` is not set.
    host_setting: str | None = None
    #: The setting that holds the key, and whether there must be one.
    key_setting: str | None = None
    key_needed: bool = True
    key_header: str = "Authorization"
    #: The provider's name in the public price list; None if it is not listed.
    priced_as: str | None = None
    #: The provider's name for the token limit of a reply; most know the older one only.
    limit_key: str = "max_tokens"


#: The newer name: reasoning tokens count as well.
_NEWER_LIMIT: Final = "max_completion_tokens"


def _hosted(
    name: str, base_url: str, priced_as: str | None = None, limit_key: str = "max_tokens"
) -> Provider:
    upper = name.upper()
    return Provider(
        base_url,
        f"{upper}_BASE_URL",
        key_setting=f"{upper}_API_KEY",
        priced_as=priced_as,
        limit_key=limit_key,
    )


def _local(name: str, base_url: str, host_setting: str | None = None) -> Provider:
    """Return a server on this machine: a key is optional, and the price is unknown."""
    upper = name.upper()
    return Provider(
        base_url,
        f"{upper}_BASE_URL",
        host_setting=host_setting,
        key_setting=f"{upper}_API_KEY",
        key_needed=False,
    )


#: Served by our own client.
COMPATIBLE: Final[dict[str, Provider]] = {
    "openai": _hosted("openai", "https://api.openai.com/v1", "openai", _NEWER_LIMIT),
    "azure": Provider(
        url_setting="AZURE_OPENAI_ENDPOINT",
        url_ending="/openai/v1",
        key_setting="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        priced_as="azure",
        limit_key=_NEWER_LIMIT,
    ),
    "cerebras": _hosted("cerebras", "https://api.cerebras.ai/v1", "cerebras", _NEWER_LIMIT),
    "deepseek": _hosted("deepseek", "https://api.deepseek.com/v1", "deepseek"),
    "fireworks": _hosted("fireworks", "https://api.fireworks.ai/inference/v1", "fireworks"),
    "groq": _hosted("groq", "https://api.groq.com/openai/v1", "groq", _NEWER_LIMIT),
    "openrouter": _hosted("openrouter", "https://openrouter.ai/api/v1", "openrouter"),
    "together": _hosted("together", "https://api.together.xyz/v1", "together"),
    "xai": _hosted("xai", "https://api.x.ai/v1", "x-ai"),
    "llamacpp": _local("llamacpp", "http://127.0.0.1:8080/v1"),
    "lmstudio": _local("lmstudio", "http://127.0.0.1:1234/v1"),
    "ollama": _local("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_HOST"),
    "vllm": _local("vllm", "http://127.0.0.1:8000/v1"),
}


@dataclass(frozen=True, slots=True)
class Library:
    """A provider with an interface of its own, reached through pydantic-ai's classes."""

    #: The module and the classes in it, for the model and for the provider.
    module: str
    model: str
    provider: str
    #: Which argument takes which setting; the first is needed.
    arguments: tuple[tuple[str, str], ...]
    priced_as: str
    #: Whether the library retries by itself and has an option against it.
    repeats: bool = False


#: Served through a library; each is an extra of the same name.
THROUGH_LIBRARY: Final[dict[str, Library]] = {
    "anthropic": Library(
        "anthropic",
        "AnthropicModel",
        "AnthropicProvider",
        (("api_key", "ANTHROPIC_API_KEY"), ("base_url", "ANTHROPIC_BASE_URL")),
        "anthropic",
        repeats=True,
    ),
    "bedrock": Library(
        "bedrock",
        "BedrockConverseModel",
        "BedrockProvider",
        (
            ("region_name", "AWS_DEFAULT_REGION"),
            ("api_key", "AWS_BEARER_TOKEN_BEDROCK"),
            ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
            ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
            ("aws_session_token", "AWS_SESSION_TOKEN"),
            ("base_url", "BEDROCK_BASE_URL"),
        ),
        "aws",
    ),
    "cohere": Library(
        "cohere", "CohereModel", "CohereProvider", (("api_key", "CO_API_KEY"),), "cohere"
    ),
    "google": Library(
        "google",
        "GoogleModel",
        "GoogleProvider",
        (("api_key", "GOOGLE_API_KEY"), ("base_url", "GOOGLE_BASE_URL")),
        "google",
    ),
    "mistral": Library(
        "mistral",
        "MistralModel",
        "MistralProvider",
        (("api_key", "MISTRAL_API_KEY"), ("base_url", "MISTRAL_BASE_URL")),
        "mistral",
    ),
}


def base_url_of(provider: Provider, settings: Mapping[str, str]) -> str | None:
    """Return where a provider is reached; None if only a setting can say it and none does."""
    url = settings.get(provider.url_setting) if provider.url_setting else None
    host = settings.get(provider.host_setting) if provider.host_setting else None
    if url:
        return url.rstrip("/") + provider.url_ending
    return _ollama_url(host) if host and host.strip() else provider.base_url


def _ollama_url(host: str) -> str:
    """Return the address that OLLAMA_HOST means, by Ollama's own rules.

    >>> _ollama_url("gpu-box"), _ollama_url("https://ollama.example.org/")
    ('http://gpu-box:11434/v1', 'https://ollama.example.org/v1')
    >>> _ollama_url("0.0.0.0:9000")
    'http://127.0.0.1:9000/v1'
    """
    text = host.strip().rstrip("/")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError as error:
        raise UsageError(
            f"OLLAMA_HOST is not a valid address: {error}", hint="write HOST:PORT, or a URL"
        ) from error
    if port is None and "://" not in text:
        port = _OLLAMA_PORT
    # A server that listens on every address is reached on this machine.
    name = parts.hostname if parts.hostname not in (None, "0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    name = f"[{name}]" if ":" in str(name) else name
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path}/v1"


def read_address_keys(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of WEFT_MODEL_KEYS by host.

    >>> read_address_keys({"WEFT_MODEL_KEYS": "127.0.0.1:8080=abc, LLM.internal=x=="})
    {'127.0.0.1:8080': 'abc', 'llm.internal': 'x=='}
    """
    found: dict[str, str] = {}
    text = settings.get(ADDRESS_KEYS) or ""
    for number, pair in enumerate(text.split(",") if text else (), 1):
        host, _, key = (part.strip() for part in pair.partition("="))
        if not host or not key or "/" in host:
            raise UsageError(  # It does not quote the pair, which may hold a key.
                f"entry {number} of {ADDRESS_KEYS} is not HOST=KEY",
                hint="write HOST=KEY or HOST:PORT=KEY, with commas between them",
            )
        found[host.lower()] = key
    return found


def refuse_login(url: str, where: str) -> None:
    """Refuse an address with a user or a password: addresses are printed and journalled."""
    if "@" in url.partition("://")[2].partition("/")[0].partition("?")[0]:
        raise UsageError(
            f"{where} contains a user name or password; addresses are printed and journalled",
            hint=f"leave it out, and set the key of the server: {ADDRESS_KEYS}=HOST:PORT=KEY",
        )
