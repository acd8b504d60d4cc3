"""What Prometheus scrapes: counts of what requests came to, and how long that took.

Labels have few values: a route is a pattern of the server's, and of names that clients or models make up only the first
hundred are kept, all others being ``other``. Of several workers each writes to a file of its own in the directory that
``PROMETHEUS_MULTIPROC_DIR`` names, and whichever is scraped answers for all of them.
"""

from __future__ import annotations

import os
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
from adapter.protocols.dropped_fields import header_safe
from adapter.server.telemetry.request_info import RequestInfo

MAX_NAMES = 100
"""Values of a label that clients or models make up."""

_FIRST = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_WHOLE = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_SPEED = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 250, 500)


class BoundedLabels:
    """The first `MAX_NAMES` different names as they are, if a terminal can say them; the others are ``other``."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        said = header_safe(name) or "unknown"
        if said not in self._known:
            if len(self._known) >= MAX_NAMES:
                return "other"
            self._known.add(said)
        return said


class Metrics:
    """An observer of requests. `text` is what a scrape gets. ``folder``: of the counts of several workers."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a time for each series, which doubles a scrape and which nobody reads
        self._registry = registry = CollectorRegistry()
        self._models, self._left = BoundedLabels(), BoundedLabels()
        if folder is None:  # what follows has no meaning for several processes together
            ProcessCollector(registry=registry)

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"adapter_{name}", help, labels, registry=registry)

        def gauge(name: str, help: str, *labels: str, mode: str = "livesum") -> Gauge:
            return Gauge(f"adapter_{name}", help, labels, registry=registry, multiprocess_mode=mode)  # type: ignore[arg-type]

        def histogram(name: str, help: str, bounds: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"adapter_{name}", help, labels, registry=registry, buckets=bounds)

        self._requests = counter("requests", "Requests, by the status of their answers.", "route", "status")
        self._broken_off = counter("broken_off", "Answers without their end: a client left, or a server.", "route")
        self._failed = counter("failed_answers", "Answers that began well and ended in an error.", "route")
        self._seconds = histogram("request_seconds", "From a request to the end of its answer.", _WHOLE, "route")
        self._first = histogram("first_piece_seconds", "From a request to its stream's first piece.", _FIRST, "route")
        self._tokens = counter("tokens", "As the model server counts them.", "model", "kind")
        self._speed = histogram("tokens_per_second", "Of a stream, from its first piece on.", _SPEED)
        self._calls = counter("calls", "Tool calls that clients got.", "model", "format")
        self._fixes = counter("fixes", "Repairs without which a call could not have been read.", "fix")
        self._refused = counter("refused_calls", "Texts that look like a call and were none.", "reason")
        self._asked_again = counter("asked_again", "Answers of no use: the model was asked again.", "guardrail")
        self._left_out = counter("left_out", "What requests had and nobody here can do.", "name")
        self._retries = counter("upstream_retries", "Times that a busy model server was asked again.")
        self._open = gauge("requests_open", "Requests whose answers are not over.", "operation")
        self._at_work = gauge("places_taken", "Requests that the model server works on.")
        self._waiting = gauge("places_waited_for", "Requests that wait for their turn.")
        self._draining = gauge("draining", "Workers that let their answers end before they stop.")
        gauge("info", "Always 1; of which version.", "version", mode="livemax").labels(__version__).set(1)

    def begun(self, seen: RequestInfo, _headers: Mapping[str, str]) -> None:
        self._open.labels(seen.operation or "none").inc()

    def ended(self, seen: RequestInfo) -> None:
        self._open.labels(seen.operation or "none").dec()
        self._requests.labels(seen.route, seen.status).inc()
        if not seen.is_whole:
            self._broken_off.labels(seen.route).inc()
        elif seen.error and seen.status == 200:
            self._failed.labels(seen.route).inc()
        self._seconds.labels(seen.route).observe(seen.seconds)
        if seen.first_s is not None and seen.is_stream:
            self._first.labels(seen.route).observe(seen.first_s)
        self._retries.inc(seen.retries)
        for name in seen.left_out:
            self._left_out.labels(self._left.of(name)).inc()
        self._account(seen)

    def places(self, at_work: int, waiting: int) -> None:
        """How many requests the model server works on now, and how many wait."""
        self._at_work.set(at_work)
        self._waiting.set(waiting)

    def drain(self) -> None:
        self._draining.set(1)

    def text(self) -> bytes:
        """The metrics of all workers, as Prometheus reads them."""
        if self._folder is None:
            return generate_latest(self._registry)
        _forget_dead(self._folder)
        together = CollectorRegistry()
        MultiProcessCollector(together, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def _account(self, seen: RequestInfo) -> None:
        account = seen.account
        # Of names that no server has answered to there may be any number.
        model = self._models.of(seen.model or account.model) if seen.status == 200 else "unknown"
        if account.calls:
            self._calls.labels(model, seen.format or "native").inc(account.calls)
        for counts, counter in (
            (account.fixes, self._fixes),
            (account.rejected, self._refused),
            (account.asked_again, self._asked_again),
        ):
            for name, count in counts.items():
                counter.labels(name).inc(count)
        if account.tokens is None:
            return
        read, written = account.tokens
        self._tokens.labels(model, "prompt").inc(read)
        self._tokens.labels(model, "completion").inc(written)
        if seen.is_stream and seen.first_s is not None and written > 1 and seen.seconds > seen.first_s:
            self._speed.observe(written / (seen.seconds - seen.first_s))


def _forget_dead(folder: Path) -> None:
    """What workers that are no more said of the present."""
    for file in folder.glob("gauge_live*_*.db"):
        number = file.stem.rpartition("_")[2]
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            mark_process_dead(int(number), str(folder))  # type: ignore[no-untyped-call]
        except OSError:
            pass  # it is there, and somebody else's
