"""Model settings as pydantic-ai takes them. What it would not send is refused, not dropped."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from pydantic_ai.models import Model as AnyModel
from pydantic_ai.settings import ModelSettings as LibrarySettings

from weft.errors import ModelError
from weft.spec.model_settings import ModelSettings

#: How the library calls what has another name here.
_NAMES: Final = {"stop": "stop_sequences", "reasoning_effort": "thinking"}

#: Models of these profiles take neither temperature nor top_p.
_NO_SAMPLING: Final = (
    "anthropic_disallows_sampling_settings",
    "bedrock_disallows_sampling_settings",
)


def library_settings(
    model: AnyModel[Any], settings: ModelSettings | None
) -> LibrarySettings | None:
    """Translate settings; raises ModelError if the library would leave one of them out.

    It maps an effort that a model does not know to the nearest one it does.
    """
    if settings is None:
        return None
    refused = list(_refused(model, settings))
    if refused:
        raise ModelError(
            f"{model.model_name} does not take {', '.join(refused)}: "
            "take that out of the model_settings of the agent and of the workflow"
        )
    made = {_NAMES.get(name, name): value for name, value in settings if value is not None}
    if settings.stop is not None:
        made["stop_sequences"] = list(settings.stop)
    if settings.reasoning_effort == "none":
        made["thinking"] = False
    return cast("LibrarySettings", made)


def _refused(model: AnyModel[Any], settings: ModelSettings) -> Iterator[str]:
    profile = cast("Mapping[str, object]", model.profile)
    not_sent: set[str] = set(model.unsupported_settings)
    if any(profile.get(it) for it in _NO_SAMPLING):
        not_sent |= {"temperature", "top_p"}
    if not _thinks_as_told(model.system, profile, settings.reasoning_effort):
        not_sent.add("thinking")
    for name, value in settings:
        if value is not None and _NAMES.get(name, name) in not_sent:
            yield name


def _thinks_as_told(system: str, profile: Mapping[str, object], effort: str | None) -> bool:
    # Two providers have models that think and are sent no effort.
    if system == "bedrock" and not profile.get("bedrock_thinking_variant"):
        return False
    if profile.get("thinking_always_enabled"):
        return effort != "none" and system != "mistral"
    return bool(profile.get("supports_thinking"))
