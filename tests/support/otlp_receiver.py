"""A collector: receives spans by OTLP over HTTP on a free port of this machine."""

import gzip
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic, sleep
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

#: What a test waits for must happen within so many seconds.
PATIENCE = 20


@dataclass(frozen=True)
class Received:
    """A span as it was received."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    status: int
    message: str
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]


@dataclass
class Collector:
    """What was received."""

    url: str
    spans: list[Received] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    #: The status of answers, and what happens before each.
    status: int = 200
    hold: threading.Event = field(default_factory=threading.Event)

    def names(self) -> list[str]:
        return sorted(span.name for span in self.spans)

    def until(self, is_so: Any) -> list[Received]:
        """Wait for spans."""
        end = monotonic() + PATIENCE
        while not is_so(self.spans):
            assert monotonic() < end, self.names()
            sleep(0.02)
        return self.spans

    def take(self, content: bytes) -> None:
        request = ExportTraceServiceRequest()
        request.ParseFromString(content)
        for group in request.resource_spans:
            resource = _values(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += (_received(span, resource) for span in scope.spans)


def _received(span: Any, resource: Mapping[str, Any]) -> Received:
    return Received(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code,
        span.status.message,
        _values(span.attributes),
        resource,
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting() -> Generator[Collector]:
    """Receive spans inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                content = gzip.decompress(content)
            collector.hold.wait()
            collector.headers.append({name.lower(): text for name, text in self.headers.items()})
            if collector.status == 200:
                collector.take(content)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        collector.hold.set()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield collector
        finally:
            collector.hold.set()
            server.shutdown()
            thread.join()
