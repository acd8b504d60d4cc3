"""A span for each request that makes a model work, as OpenTelemetry's conventions for generative AI name things.

Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, "Inference" (of November
2026, status: development); names that are not there begin with ``adapter.``. The span goes on from the client's
``traceparent`` and is handed on to the model server. What was said is never in it: ``--record`` keeps that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from adapter.core.version import __version__
from adapter.server.telemetry.request_info import RequestInfo

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_ASKED = {
    "temperature": ("temperature", float),
    "top_p": ("top_p", float),
    "top_k": ("top_k", float),
    "frequency_penalty": ("frequency_penalty", float),
    "presence_penalty": ("presence_penalty", float),
    "seed": ("seed", int),
    "max_tokens": ("max_tokens", int),
    "max_completion_tokens": ("max_tokens", int),
}
"""Fields of a request: what they are called in ``gen_ai.request.*``, and of which type."""


class TraceExporter:
    """An observer that makes spans with ``provider``. ``upstream``: the base URL of the server that they are about."""

    def __init__(self, provider: TracerProvider, upstream: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("toolcall-adapter", __version__)
        parts = urlsplit(upstream)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server: dict[str, str | int] = {"server.address": parts.hostname or "", "server.port": port}
        self._spans: dict[int, Span] = {}

    def begun(self, seen: RequestInfo, headers: Mapping[str, str]) -> None:
        if not seen.operation:
            return
        span = self._tracer.start_span(
            seen.operation,
            propagate.extract(dict(headers)),
            SpanKind.CLIENT,
            {"gen_ai.operation.name": seen.operation, "gen_ai.provider.name": "openai", **self._server},
        )
        propagate.inject(seen.handed_on, trace.set_span_in_context(span))
        self._spans[id(seen)] = span

    def ended(self, seen: RequestInfo) -> None:
        span = self._spans.pop(id(seen), None)
        if span is None:
            return
        if span.is_recording():
            if seen.model:
                span.update_name(f"{seen.operation} {seen.model}")
            span.set_attributes({key: value for key, value in self._attributes(seen).items() if value not in ("", [])})
            if kind := _error_of(seen):
                span.set_attribute("error.type", kind)
                span.set_status(Status(StatusCode.ERROR))
        span.end()

    def close(self) -> None:
        """Send what was not sent yet."""
        self._provider.shutdown()

    def _attributes(self, seen: RequestInfo) -> dict[str, Any]:
        account = seen.account
        read, written = account.tokens or ("", "")
        return {
            "adapter.request_id": seen.id,
            "adapter.route": seen.route,
            "http.response.status_code": seen.status,
            "gen_ai.request.model": seen.model,
            "gen_ai.request.stream": True if seen.is_stream else "",
            **{f"gen_ai.request.{name}": value for name, value in _asked(seen).items()},
            "gen_ai.response.model": account.model,
            "gen_ai.response.id": account.answer_id,
            "gen_ai.response.finish_reasons": account.finish_reasons,
            "gen_ai.response.time_to_first_chunk": seen.first_s if seen.is_stream and seen.first_s else "",
            "gen_ai.usage.input_tokens": read,
            "gen_ai.usage.output_tokens": written,
            "adapter.format": seen.format,
            "adapter.calls": account.calls,
            "adapter.fixes": sorted(account.fixes),
            "adapter.refused_calls": sorted(account.rejected),
            "adapter.asked_again": sorted(account.asked_again),
            "adapter.left_out": seen.left_out,
            "adapter.upstream_retries": seen.retries or "",
        }


def _asked(seen: RequestInfo) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for field, (name, kind) in _ASKED.items():
        value = seen.sent.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            asked[name] = kind(value)
    stop = seen.sent.get("stop")
    stops = [stop] if isinstance(stop, str) else [each for each in stop or () if isinstance(each, str)]
    choices = seen.sent.get("n")
    return asked | {
        "stop_sequences": stops,
        "choice.count": choices if isinstance(choices, int) and choices != 1 else "",
    }


def _error_of(seen: RequestInfo) -> str:
    """As ``error.type`` has it: what kind of error the client was told, else the status."""
    if seen.error:
        return seen.error
    if seen.status >= 400:
        return str(seen.status)
    return "" if seen.is_whole else "broken_off"


def build_trace_exporter(upstream: str, environment: Mapping[str, str]) -> TraceExporter:
    """Spans that go where the ``OTEL_*`` variables say."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = environment.get("OTEL_SERVICE_NAME") or "toolcall-adapter"
    provider = TracerProvider(resource=Resource.create({"service.name": name, "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return TraceExporter(provider, upstream)
