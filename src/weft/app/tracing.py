"""Tracing of runs by OpenTelemetry, switched on by its standard variables."""

import logging
from collections.abc import Mapping
from typing import Final

from weft.adapters.otel.tracer import RunTracer
from weft.app.installation import TRUTHY, is_installed
from weft.runtime.host import Host

_log: Final = logging.getLogger("weft.tracing")

#: Variables of OpenTelemetry. All others, such as headers and batches, its library reads itself.
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
TRACES_PROTOCOL: Final = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
DISABLED: Final = "OTEL_SDK_DISABLED"
CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def trace_runs(host: Host, settings: Mapping[str, str]) -> Host:
    """Send the spans of the runs of a host to the collector that the settings name, if any.

    A variable may be meant for other programs: one that does not work here is a warning.
    """
    named = settings.get(TRACES_ENDPOINT) or settings.get(ENDPOINT)
    exporter = settings.get(EXPORTER) or ("otlp" if named else "none")
    protocol = settings.get(TRACES_PROTOCOL) or settings.get(PROTOCOL) or "http/protobuf"
    if exporter == "none" or settings.get(DISABLED, "").strip().lower() == "true":
        return host
    if exporter != "otlp":
        _log.warning("no spans are sent: %s is otlp or none, not %s", EXPORTER, exporter)
    elif protocol != "http/protobuf":
        _log.warning("no spans are sent: %s is http/protobuf, not %s", PROTOCOL, protocol)
    elif not is_installed("opentelemetry"):
        _log.warning('no spans are sent: install "weft-agents[otel]"')
    else:
        _send_spans(host, settings)
    return host


def _send_spans(host: Host, settings: Mapping[str, str]) -> None:
    # Deferred: only for those who have a collector.
    from weft.adapters.otel.exporter import SpanSender  # noqa: PLC0415

    base = settings.get(ENDPOINT)
    endpoint = settings.get(TRACES_ENDPOINT) or (base and f"{base.rstrip('/')}/v1/traces")
    content = settings.get(CONTENT, "").strip().lower() in TRUTHY
    sender = SpanSender(endpoint, content=content)
    tracer = RunTracer(host, sender.send, content=content)

    async def close() -> None:
        tracer.close()
        await sender.close()

    host.observe(tracer.observe)
    host.on_close(close)
