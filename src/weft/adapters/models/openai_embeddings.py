"""Embeddings behind any endpoint that speaks `/v1/embeddings`, asked through the same client."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError
from pydantic_core import from_json, to_json

from weft.adapters.models.limits import RetryPolicy
from weft.adapters.models.openai_http import Connections, Endpoint
from weft.adapters.models.provider_errors import as_object, status_error
from weft.errors import ModelError, RetrievalError
from weft.ports.clock import Clock
from weft.ports.retrieval import require_texts

if TYPE_CHECKING:
    from weft.ports.retrieval import Vectors

#: The most texts of one request.
MOST_TEXTS: Final = 64


class HttpEmbedder:
    """One embedding model of an endpoint, with retries."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        name: str,
        clock: Clock,
        random: Random,
        seconds: float,
        policy: RetryPolicy,
    ) -> None:
        self.name = name
        self._url = endpoint.url("/embeddings")
        self._headers = endpoint.headers()
        self._key = endpoint.key
        self._model = model
        self._clock, self._random = clock, random
        self._seconds, self._policy = seconds, policy
        self._connections = Connections()

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np  # noqa: PLC0415 - an optional part

        require_texts(texts)
        parts = [
            await self._embed_with_retries(list(texts[at : at + MOST_TEXTS]))
            for at in range(0, len(texts), MOST_TEXTS)
        ]
        found = np.asarray([row for part in parts for row in part], np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise RetrievalError(f"{self.name} returned a vector of length zero")
        return found / lengths

    async def close(self) -> None:
        await self._connections.close()

    async def _embed_with_retries(self, texts: list[str]) -> list[list[float]]:
        attempt = 1
        while True:
            try:
                return await self._request(texts)
            except RetrievalError as error:
                attempt += 1
                if not error.retryable or attempt > self._policy.attempts:
                    raise
                wait = self._policy.wait_before(attempt, self._random.random())
                wait = max(wait, error.after_seconds or 0.0)
            await self._clock.sleep_until(round(self._clock.now() + wait * 1000))

    async def _request(self, texts: list[str]) -> list[list[float]]:
        body = to_json({"model": self._model, "input": texts, "encoding_format": "float"})
        session = self._connections.session()
        try:
            async with (
                asyncio.timeout(self._seconds),
                session.post(
                    self._url, data=body, headers=self._headers, allow_redirects=False
                ) as response,
            ):
                raw = await response.read()
                if response.status != 200:
                    raise self._to_retrieval_error(
                        status_error(response.status, response.headers, raw)
                    )
        except TimeoutError as error:
            fault = f"{self.name} gave no answer in {self._seconds:g} seconds"
            raise RetrievalError(fault, retryable=True) from error
        except (ClientError, OSError) as error:
            fault = f"{self.name}: no connection: {error}"
            hint = "start the server, or correct its address"
            raise RetrievalError(fault, hint=hint, retryable=True) from error
        return self._parse_vectors(raw, len(texts))

    def _to_retrieval_error(self, fault: ModelError) -> RetrievalError:
        text = f"{self.name}: {fault}"
        return RetrievalError(
            text.replace(self._key, "(key)") if self._key else text,
            retryable=fault.retryable,
            after_seconds=fault.after_seconds,
        )

    def _parse_vectors(self, raw: bytes, count: int) -> list[list[float]]:
        """Read the vectors of an answer, in the order of the texts."""
        try:
            body: Any = as_object(from_json(raw)) or {}
            rows: list[Any] = sorted(body["data"], key=lambda row: row["index"])
            found: list[list[float]] = [[float(n) for n in row["embedding"]] for row in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise RetrievalError(f"{self.name} returned something other than vectors") from error
        if len(found) != count or len({len(vector) for vector in found}) != 1:
            raise RetrievalError(
                f"{self.name} answered with {len(found)} vectors of unequal length or number, "
                f"and {count} were asked for"
            )
        return found
