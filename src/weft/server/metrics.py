"""Metrics for Prometheus: runs, tools and models, HTTP requests, workers and waiting runs."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import accumulate
from time import perf_counter
from typing import Final, NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from weft.errors import SetupError
from weft.inspect.totals import BOUNDS, Metric, RunTotals
from weft.ports.store import Workload
from weft.runtime.host import Host
from weft.runtime.runs.decision import Decision
from weft.runtime.workflow import Workflow

HTTP_REQUESTS: Final = Metric(
    "http_requests", "HTTP requests by route and status.", ("method", "route", "status")
)
HTTP_SECONDS: Final = Metric(
    "http_request_duration_seconds", "Durations of HTTP requests.", ("method", "route")
)

#: Seconds for which the workers and the number of waiting runs are not read again.
_CURRENT: Final = 1.0


class Gauge(NamedTuple):
    """Something that is counted whenever it is asked for."""

    name: str
    text: str
    value: Callable[[], int]


class Metrics(Collector):
    """The metrics of one server."""

    def __init__(self, host: Host, *, works: bool = True) -> None:
        self.totals = RunTotals()
        #: Sockets that are open.
        self.sockets = 0
        self._host = host
        self._gauges = [Gauge("sockets", "Open sockets.", lambda: self.sockets)]
        if works:
            text = "Runs that this process works on."
            self._gauges.append(Gauge("runs_in_use", text, lambda: host.runs_in_use))
        self._workload: Workload | None = None
        self._read_at = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        host.observe(self._observe)

    def _observe(self, workflow: Workflow, decision: Decision) -> None:
        state = decision.state
        self.totals.add(state.app, state.run, workflow.name, decision.events)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request."""
        self.totals.count(HTTP_REQUESTS, (method, route, str(status)))
        self.totals.time(HTTP_SECONDS, (method, route), seconds)

    async def page(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in the text format that a scraper accepts, and its media type."""
        now = perf_counter()
        if self._workload is None or now - self._read_at >= _CURRENT:
            self._workload, self._read_at = await self._host.workload(), now
        encode, media = choose_encoder(accept)
        return encode(self._registry), media

    def collect(self) -> Iterator[Family]:
        """Yield all metrics: Prometheus calls this."""
        yield from (_counter(each, found.items()) for each, found in self.totals.counts.items())
        for metric, series in self.totals.durations.items():
            family = HistogramMetricFamily(_name(metric.name), metric.text, labels=metric.labels)
            bounds = [*map(str, BOUNDS), "+Inf"]
            for labels, found in series.items():
                ranges = list(zip(bounds, accumulate(found.counts), strict=True))
                family.add_metric(labels, ranges, found.seconds)
            yield family
        for name, text, value in self._gauges:
            yield GaugeMetricFamily(_name(name), text, value())
        if self._workload is not None:
            yield from _workers(self._workload)


@asynccontextmanager
async def serving_metrics(host: Host, address: str) -> AsyncGenerator[None]:
    """Answer `GET /metrics` with the metrics of a process without routes, such as a worker.

    The address is `HOST:PORT`. Raises SetupError if the process cannot listen there.
    """
    name, _, port = address.rpartition(":")
    metrics = Metrics(host)

    async def answer(request: web.Request) -> web.Response:
        content, media = await metrics.page(request.headers.get("accept", ""))
        return web.Response(body=content, headers={"content-type": media})

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, name.strip("[]"), int(port)).start()
    except OSError as error:
        await runner.cleanup()
        raise SetupError(
            f"cannot listen on {address}: {error.strerror or error}", hint="use another address"
        ) from error
    try:
        yield
    finally:
        await runner.cleanup()


def _name(name: str) -> str:
    return f"weft_{name}"


def _counter(metric: Metric, series: Iterable[tuple[tuple[str, ...], int]]) -> Family:
    family = CounterMetricFamily(_name(metric.name), metric.text, labels=metric.labels)
    for labels, number in series:
        family.add_metric(labels, number)
    return family


def _workers(found: Workload) -> Iterator[Family]:
    yield GaugeMetricFamily("weft_runs_waiting", "Runs that wait for a worker.", found.waiting)
    age = GaugeMetricFamily(
        "weft_worker_heartbeat_age_seconds", "Time since the last heartbeat.", labels=("owner",)
    )
    runs = GaugeMetricFamily("weft_worker_runs", "Runs that a worker holds.", labels=("owner",))
    for owner in found.owners:
        runs.add_metric((owner.owner,), owner.runs)
        if owner.seen_at:
            age.add_metric((owner.owner,), max(found.now - owner.seen_at, 0) / 1000)
    yield from (age, runs)
