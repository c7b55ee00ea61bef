"""From names to models: which provider, which key, and everything around a call."""

import asyncio
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from benchmarks.mock_server import FAULTS, Answer, MockServer

from support.cases import read_cases
from support.model_play import Canned, StillClock, ask, run
from weft.adapters.models.limits import RetryPolicy
from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY, Provider, base_url_of
from weft.adapters.models.registry import CallRules, ModelRegistry
from weft.errors import ModelError, SetupError, UsageError
from weft.ports.model import ModelReply
from weft.spec.agents import ModelSettings

CASES = read_cases(__file__)


def registry(settings: dict[str, str] | None = None, **rest: Any) -> ModelRegistry:
    clock = rest.pop("clock", None) or StillClock()
    return ModelRegistry(clock=clock, random=Random(1), settings=settings or {}, **rest)


def asked(
    name: str, *script: Answer, settings: dict[str, str] | None = None, **rest: Any
) -> tuple[ModelReply | ModelError, MockServer]:
    """Ask the model of a name, in which HERE stands for a server on this machine."""

    async def play() -> tuple[ModelReply | ModelError, MockServer]:
        async with MockServer(script) as server:
            here = {
                key: setting.replace("HERE", server.base_url)
                for key, setting in (settings or {}).items()
            }
            models = registry(here, **rest)
            try:
                return await models.model(name.replace("HERE", server.base_url)).reply(
                    ask()
                ), server
            except ModelError as caught:
                return caught, server
            finally:
                await models.close()

    return run(play())


def test_a_server_and_a_model_are_enough():
    reply, server = asked("HERE#tiny", Answer("hi"))
    assert isinstance(reply, ModelReply)
    assert reply.text == "hi"
    assert reply.usage.cost_usd is None
    assert server.seen[0].body["model"] == "tiny"
    assert "Authorization" not in server.seen[0].headers


@pytest.mark.parametrize("name", COMPATIBLE)
def test_token_limit_uses_the_provider_s_key(name: str):
    async def play() -> dict[str, Any]:
        async with MockServer() as server:
            provider = COMPATIBLE[name]
            settings = {f"{provider.url_setting}": server.base_url, f"{provider.key_setting}": "k"}
            models = registry(settings)
            limit = ModelSettings(max_tokens=9)
            await models.model(f"{name}:tiny").reply(ask(settings=limit))
            await models.close()
            return server.seen[0].body

    newer = name in {"openai", "azure", "cerebras", "groq"}
    body = run(play())
    assert body["max_completion_tokens" if newer else "max_tokens"] == 9
    assert len(body) == 3


@pytest.mark.parametrize("name", [item for item in COMPATIBLE if item != "azure"])
def test_every_provider_takes_its_address_and_key_from_the_settings(name: str):
    upper = name.upper()
    settings = {f"{upper}_BASE_URL": "HERE", f"{upper}_API_KEY": "k1"}
    reply, server = asked(f"{name}:some/model:8b", Answer("hi"), settings=settings)
    assert isinstance(reply, ModelReply)
    assert server.seen[0].body["model"] == "some/model:8b"
    assert server.seen[0].headers["Authorization"] == "Bearer k1"


def test_azure_has_its_own_path_and_header():
    settings = {"AZURE_OPENAI_ENDPOINT": "HERE/", "AZURE_OPENAI_API_KEY": "k2"}
    _, server = asked("azure:my-deployment", Answer("hi"), settings=settings)
    assert server.seen[0].path == "/v1/openai/v1/chat/completions"
    assert server.seen[0].headers["api-key"] == "k2"


def test_key_of_an_address_goes_to_its_host_only():
    settings = {"WEFT_MODEL_KEYS": "127.0.0.1=k9, llm.internal:8080=other"}
    _, server = asked("HERE#tiny", Answer("hi"), settings=settings)
    assert server.seen[0].headers["Authorization"] == "Bearer k9"
    _, server = asked("HERE#tiny", Answer("hi"), settings={"WEFT_MODEL_KEYS": "127.0.0.1:1=k9"})
    assert "Authorization" not in server.seen[0].headers


async def test_key_of_a_port_wins_over_the_key_of_its_host():
    async with MockServer([Answer("hi")]) as server:
        authority = server.base_url.split("/")[2]
        models = registry({"WEFT_MODEL_KEYS": f"{authority}=port,127.0.0.1=host"})
        await models.model(f"{server.base_url}#m").reply(ask())
        await models.close()
        assert server.seen[0].headers["Authorization"] == "Bearer port"


def test_ollama_host_is_used():
    async def play(**settings: str) -> str:
        async with MockServer([Answer("hi")]) as server:
            authority = server.base_url.split("/")[2]
            models = registry({"OLLAMA_HOST": authority, **settings})
            try:
                return (await models.model("ollama:tiny").reply(ask())).text
            finally:
                await models.close()

    assert run(play()) == "hi"
    with pytest.raises(ModelError, match="no connection"):
        run(play(OLLAMA_BASE_URL="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("http://gpu", "http://gpu/v1"),
        (":9000", "http://127.0.0.1:9000/v1"),
        ("[::1]:9000", "http://[::1]:9000/v1"),
        ("https://o.example.org/base", "https://o.example.org/base/v1"),
        (" ", "http://127.0.0.1:11434/v1"),
    ],
)
def test_ollama_host_follows_the_rules_of_ollama(host: str, url: str):
    assert base_url_of(COMPATIBLE["ollama"], {"OLLAMA_HOST": host}) == url


def test_invalid_ollama_host_is_refused():
    with pytest.raises(UsageError, match="OLLAMA_HOST is not a valid address"):
        registry({"OLLAMA_HOST": "gpu:port"}).model("ollama:tiny")


def test_password_in_an_address_setting_is_refused():
    with pytest.raises(UsageError, match="OPENAI_BASE_URL contains a user name") as caught:
        registry({"OPENAI_BASE_URL": "http://u:pw@h/v1", "OPENAI_API_KEY": "k"}).model("openai:m")
    assert "pw@" not in str(caught.value)


def test_providers_of_ones_own():
    mine = Provider("http://127.0.0.1:9/v1", url_setting="MINE_URL", key_setting="MINE_KEY")
    settings = {"MINE_URL": "HERE", "MINE_KEY": "k3"}
    _, server = asked("mine:m", Answer("hi"), settings=settings, providers={"mine": mine})
    assert server.seen[0].headers["Authorization"] == "Bearer k3"


@pytest.mark.parametrize("name", sorted({*COMPATIBLE, *THROUGH_LIBRARY}))
def test_missing_key_is_named(name: str):
    local = name in COMPATIBLE and not COMPATIBLE[name].key_needed
    models = registry()
    if local:
        models.model(f"{name}:m")
        return
    with pytest.raises(UsageError) as caught:
        models.model(f"{name}:m")
    setting = (
        COMPATIBLE[name].key_setting
        if name in COMPATIBLE
        else THROUGH_LIBRARY[name].arguments[0][1]
    )
    assert str(caught.value).startswith(f"{name}:m needs a")
    assert f"set {setting}; without a key: sample" in str(caught.value.hint)


def test_missing_address_is_reported_too():
    with pytest.raises(UsageError, match="azure:m needs its address") as caught:
        registry({"AZURE_OPENAI_API_KEY": "k"}).model("azure:m")
    assert "AZURE_OPENAI_ENDPOINT" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "message", "hint"), CASES["test_names_that_mean_nothing_are_explained"]
)
def test_names_that_mean_nothing_are_explained(name: str, message: str, hint: str):
    models = registry(factories={"sample": lambda _: Canned()})
    with pytest.raises(UsageError) as caught:
        models.model(name)
    assert message in str(caught.value)
    assert hint in str(caught.value.hint)


def test_models_that_others_make_are_given_what_follows_the_colon():
    made: list[str] = []

    def make(rest: str) -> Canned:
        made.append(rest)
        return Canned()

    models = registry(factories={"replay": make, "sample": make})
    assert models.model("sample") is models.model("sample")
    models.model("replay:run:7")
    assert made == ["", "run:7"]


async def test_a_model_is_made_once_and_anew_after_closing():
    models = registry()
    first = models.model("http://127.0.0.1:1/v1#m")
    assert models.model("http://127.0.0.1:1/v1#m") is first
    await models.close()
    assert models.model("http://127.0.0.1:1/v1#m") is not first
    await models.close()


def test_transient_error_is_retried():
    clock = StillClock()
    reply, server = asked("HERE#m", FAULTS["429"], FAULTS["500"], Answer("hi"), clock=clock)
    assert isinstance(reply, ModelReply)
    assert len(server.seen) == 3
    assert len(clock.waits) == 2


def test_unresponsive_model_is_abandoned_and_retried():
    rules = CallRules(seconds=0.1, retries=RetryPolicy(attempts=2))
    fault, server = asked("HERE#m", FAULTS["hang"], FAULTS["hang"], Answer("hi"), rules=rules)
    assert "#m within 0.1 s. Try again later" in str(fault)
    assert str(fault).endswith("(attempts: 2)")
    assert len(server.seen) == 2


async def test_only_so_many_calls_of_one_model_run_at_once():
    running, most = 0, 0
    async with MockServer(latency=0.02) as server:
        inner = server._decide

        def decide(body: dict[str, Any]) -> Answer:
            nonlocal running, most
            running += 1
            most = max(most, running)
            asyncio.get_running_loop().call_later(0.02, lower)
            return inner(body)

        def lower() -> None:
            nonlocal running
            running -= 1

        server._decide = decide
        models = registry(rules=CallRules(at_once=2))
        model = models.model(f"{server.base_url}#m")
        await asyncio.gather(*(model.reply(ask()) for _ in range(8)))
        await models.close()
    assert most == 2


def test_prices_of_ones_own_are_used():
    reply, _ = asked("HERE#m", Answer("hi"), prices={"m": (1e6, 0.0)})
    assert isinstance(reply, ModelReply)
    assert reply.usage.cost_usd == reply.usage.input_tokens


def test_public_prices_are_used_for_those_who_have_them():
    settings = {"OPENAI_BASE_URL": "HERE", "OPENAI_API_KEY": "k"}
    reply, _ = asked("openai:gpt-4o", Answer("hi"), settings=settings)
    assert isinstance(reply, ModelReply)
    assert reply.usage.cost_usd is not None
    assert reply.usage.cost_usd > 0


def test_an_extra_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for name in ("connections", "openai_http"):
        monkeypatch.delitem(sys.modules, f"weft.adapters.models.{name}", raising=False)
    with pytest.raises(SetupError) as caught:
        registry().model("ollama:tiny")
    assert str(caught.value) == "ollama:tiny needs a library that is not installed: aiohttp"
    assert caught.value.hint == 'install it: pip install "weft-agents[models]"'


def test_a_reply_counts_though_nothing_tells_what_it_cost(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    settings = {"OPENAI_BASE_URL": "HERE", "OPENAI_API_KEY": "k"}
    reply, _ = asked("openai:gpt-4o", Answer("hi"), settings=settings)
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.usage.cost_usd) == ("hi", None)


def test_slow_libraries_are_loaded_on_demand():
    code = (
        "import sys, weft.adapters.models.registry, weft.adapters.models.sample\n"
        "slow = ('aiohttp', 'pydantic_ai', 'genai_prices')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
