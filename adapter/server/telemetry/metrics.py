"""Count requests and their durations as Prometheus metrics.

The number of label values is limited: a route is one of the server's patterns, and only the first hundred names from
clients or models become labels; later ones are counted as ``other``. If there are several workers, each writes a file
in the directory named by ``PROMETHEUS_MULTIPROC_DIR``, and any worker can answer a scrape for all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from adapter.core.version import __version__
from adapter.protocols.dropped_fields import sanitize_for_header
from adapter.server.telemetry.request_info import RequestInfo

MAX_NAMES = 100
"""Maximum number of values of a label whose values come from clients or models."""

_FIRST = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_WHOLE = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_SPEED = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 250, 500)


class BoundedLabels:
    """Limits the number of different values of a label.

    The first `MAX_NAMES` names become values, without characters that are unsafe in terminals. Later names become
    ``other``.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def to_label(self, name: str) -> str:
        """Return the label value for ``name``."""
        label = sanitize_for_header(name) or "unknown"
        if label not in self._known:
            if len(self._known) >= MAX_NAMES:
                return "other"
            self._known.add(label)
        return label


class Metrics:
    """An observer that counts requests. ``folder`` is the directory of the workers' files, or None for one worker."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        disable_created_metrics()  # type: ignore[no-untyped-call]  # creation times would double the size of a scrape
        self._registry = registry = CollectorRegistry()
        self._models, self._dropped_names = BoundedLabels(), BoundedLabels()
        if folder is None:  # meaningless for several processes
            ProcessCollector(registry=registry)

        def create_counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"adapter_{name}", help, labels, registry=registry)

        def create_gauge(name: str, help: str, *labels: str, mode: str = "livesum") -> Gauge:
            return Gauge(f"adapter_{name}", help, labels, registry=registry, multiprocess_mode=mode)  # type: ignore[arg-type]

        def create_histogram(name: str, help: str, bounds: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"adapter_{name}", help, labels, registry=registry, buckets=bounds)

        self._requests = create_counter("requests", "Requests, by the status of their answers.", "route", "status")
        self._broken_off = create_counter(
            "broken_off", "Responses cut off: the client or a server disconnected.", "route"
        )
        self._failed = create_counter("failed_answers", "Responses with status 200 that ended in an error.", "route")
        self._seconds = create_histogram(
            "request_seconds", "Time from a request to the end of its response.", _WHOLE, "route"
        )
        self._first = create_histogram(
            "first_piece_seconds", "Time from a request to the first piece of its stream.", _FIRST, "route"
        )
        self._tokens = create_counter("tokens", "Tokens, as counted by the model server.", "model", "kind")
        self._speed = create_histogram("tokens_per_second", "Speed of streams, from their first piece on.", _SPEED)
        self._calls = create_counter("calls", "Tool calls sent to clients.", "model", "format")
        self._fixes = create_counter("fixes", "Repairs needed to parse calls.", "fix")
        self._rejected = create_counter("refused_calls", "Texts that looked like calls but were rejected.", "reason")
        self._answer_retries = create_counter("asked_again", "Unusable answers that were retried.", "guardrail")
        self._dropped_calls = create_counter("dropped_calls", "Calls that clients did not get.", "guardrail")
        self._dropped = create_counter("left_out", "Request fields dropped as unsupported.", "name")
        self._retries = create_counter("upstream_retries", "Retried requests to a busy model server.")
        self._open = create_gauge("requests_open", "Requests whose responses are not complete.", "operation")
        self._running = create_gauge("places_taken", "Requests running at the model server.")
        self._waiting = create_gauge("places_waited_for", "Requests waiting in the queue.")
        self._draining = create_gauge("draining", "Workers that are shutting down gracefully.")
        create_gauge("info", "Always 1, labeled with the version.", "version", mode="livemax").labels(__version__).set(
            1
        )

    def on_start(self, request: RequestInfo, _headers: Mapping[str, str]) -> None:
        self._open.labels(request.operation or "none").inc()

    def on_end(self, request: RequestInfo) -> None:
        self._open.labels(request.operation or "none").dec()
        self._requests.labels(request.route, request.status).inc()
        if not request.is_whole:
            self._broken_off.labels(request.route).inc()
        elif request.error and request.status == 200:
            self._failed.labels(request.route).inc()
        self._seconds.labels(request.route).observe(request.seconds)
        if request.first_s is not None and request.is_stream:
            self._first.labels(request.route).observe(request.first_s)
        self._retries.inc(request.retries)
        for name in request.dropped:
            self._dropped.labels(self._dropped_names.to_label(name)).inc()
        self._count_answer(request)

    def set_queue(self, running: int, waiting: int) -> None:
        """Set the number of running requests and the number of queued requests."""
        self._running.set(running)
        self._waiting.set(waiting)

    def drain(self) -> None:
        self._draining.set(1)

    def render_text(self) -> bytes:
        """Return the metrics of all workers in Prometheus's text format."""
        if self._folder is None:
            return generate_latest(self._registry)
        _drop_dead_workers(self._folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _count_answer(self, request: RequestInfo) -> None:
        stats = request.stats
        # requests that fail may name any model
        model = self._models.to_label(request.model or stats.model) if request.status == 200 else "unknown"
        if stats.calls:
            self._calls.labels(model, request.format or "native").inc(stats.calls)
        for counts, counter in (
            (stats.fixes, self._fixes),
            (stats.rejected, self._rejected),
            (stats.asked_again, self._answer_retries),
            (stats.dropped, self._dropped_calls),
        ):
            for name, count in counts.items():
                counter.labels(name).inc(count)
        if stats.tokens is None:
            return
        prompt, completion = stats.tokens
        self._tokens.labels(model, "prompt").inc(prompt)
        self._tokens.labels(model, "completion").inc(completion)
        if request.is_stream and request.first_s is not None and completion > 1 and request.seconds > request.first_s:
            self._speed.observe(completion / (request.seconds - request.first_s))


def _drop_dead_workers(folder: Path) -> None:
    """Remove gauges of exited workers. Windows keeps them: its signal 0, meant to test a process, is Ctrl-C."""
    if sys.platform == "win32":
        return
    for file in folder.glob("gauge_live*_*.db"):
        number = file.stem.rpartition("_")[2]
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            mark_process_dead(int(number), str(folder))  # type: ignore[no-untyped-call]
        except OSError:
            pass  # a process of another user
