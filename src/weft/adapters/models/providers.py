"""The model providers that are known by name."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint: where it is, and which settings it is reached with."""

    #: Where the interface begins; None if only a setting can say it.
    base_url: str | None = None
    #: The setting that says it otherwise, and what is added to what it says.
    url_setting: str | None = None
    url_ending: str = ""
    #: The setting that holds the key, and whether there must be one.
    key_setting: str | None = None
    key_needed: bool = True
    key_header: str = "Authorization"
    #: How the public price list calls the provider; None if it has no prices.
    priced_as: str | None = None
    #: What it calls the most tokens that a reply may have; most know the older word only.
    limit_key: str = "max_tokens"


#: The newer word: what the model thinks counts as well.
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


def _local(name: str, base_url: str) -> Provider:
    """A server on this machine: it may want a key, and nobody knows what it costs."""
    upper = name.upper()
    return Provider(base_url, f"{upper}_BASE_URL", "", f"{upper}_API_KEY", key_needed=False)


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
    "ollama": _local("ollama", "http://127.0.0.1:11434/v1"),
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
    #: Whether the library repeats calls by itself and can be told not to.
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
