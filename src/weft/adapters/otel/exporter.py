"""Sending spans to a collector by OTLP, in the background, as the standard variables say."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from weft.inspect.spans import Span, trace_id

_log: Final = logging.getLogger("weft.tracing")

#: Seconds for sending the last spans when a host closes.
_LAST_SECONDS: Final = 5.0

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class SpanSender:
    """Sends spans in batches from a thread; when too many wait, new ones are dropped."""

    def __init__(self, endpoint: str | None, *, content: bool) -> None:
        """Use the default endpoint if none is given. With `content`, export errors in full."""
        self._content = content
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._resource = provider.resource
        self._sampler = provider.sampler
        self._scope = InstrumentationScope("weft", version("weft-agents"))
        self._batches = BatchSpanProcessor(_Exporter(OTLPSpanExporter(endpoint=endpoint)))

    def send(self, app: str, span: Span) -> None:
        """Send a span that has ended, unless its trace is not sampled."""
        trace = int(trace_id(app, span.run), 16)
        sampled = self._sampler.should_sample(None, trace, span.title)
        if sampled.decision is not Decision.RECORD_AND_SAMPLE:
            return
        begun = span.started_at * 1_000_000
        status = Status(StatusCode.ERROR, span.error if self._content else None)
        self._batches.on_end(
            ReadableSpan(
                span.title,
                context=_context(trace, span.id),
                parent=_context(trace, span.parent_id) if span.parent_id else None,
                resource=self._resource,
                attributes=span.attributes,
                kind=SpanKind.CLIENT if span.kind == "model" else SpanKind.INTERNAL,
                status=status if span.failed else Status(),
                start_time=begun,
                end_time=begun + round((span.ms or 0) * 1_000_000),
                instrumentation_scope=self._scope,
            )
        )

    async def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        thread = threading.Thread(target=self._batches.shutdown, daemon=True)
        thread.start()
        end = asyncio.get_running_loop().time() + _LAST_SECONDS
        while thread.is_alive() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - a thread
            await asyncio.sleep(0.01)


def _context(trace: int, span: str) -> SpanContext:
    return SpanContext(trace, int(span, 16), is_remote=False, trace_flags=_SAMPLED)


def _resource() -> Resource:
    """Return what sends the spans: as the environment says, and `weft` if it gives no name."""
    found = Resource.create()
    named = str(found.attributes.get(SERVICE_NAME, ""))
    is_named = bool(named) and not named.startswith("unknown_service")
    return found if is_named else found.merge(Resource({SERVICE_NAME: "weft"}))


class _LastMessage(logging.Handler):
    """Keeps the last message of the library, which says why spans were not sent."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


class _Exporter(SpanExporter):
    """Logs once when a collector is not reachable, and once when it is again."""

    def __init__(self, exporter: OTLPSpanExporter) -> None:
        self._exporter = exporter
        self._failed = 0
        self._reason = _LastMessage()
        # It has a handler of its own, so the library does not print to the error stream.
        logging.getLogger("opentelemetry").addHandler(self._reason)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            if not self._failed:
                _log.warning("spans cannot be sent, and are lost: %s", self._reason.text)
            self._failed += len(spans)
        elif self._failed:
            _log.warning("spans are sent again; %d were lost", self._failed)
            self._failed = 0
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
        logging.getLogger("opentelemetry").removeHandler(self._reason)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
