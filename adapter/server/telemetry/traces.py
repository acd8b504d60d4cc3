"""Create OpenTelemetry spans for requests to the model, named by the semantic conventions for generative AI.

Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, "Inference" (of November
2026, status: development). Attributes outside of the conventions begin with ``adapter.``. A span continues the client's
trace (``traceparent``), which is passed on to the model server. Spans never contain prompts or answers, which only
``--record`` stores.
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

_REQUEST_ATTRIBUTES = {
    "temperature": ("temperature", float),
    "top_p": ("top_p", float),
    "top_k": ("top_k", float),
    "frequency_penalty": ("frequency_penalty", float),
    "presence_penalty": ("presence_penalty", float),
    "seed": ("seed", int),
    "max_tokens": ("max_tokens", int),
    "max_completion_tokens": ("max_tokens", int),
}
"""The span attribute for each request field: its name without the prefix ``gen_ai.request.``, and its type."""


class TraceExporter:
    """An observer that creates a span, exported by ``provider``, for each request to the model server ``upstream``."""

    def __init__(self, provider: TracerProvider, upstream: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("toolcall-adapter", __version__)
        parts = urlsplit(upstream)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server: dict[str, str | int] = {"server.address": parts.hostname or "", "server.port": port}
        self._spans: dict[int, Span] = {}

    def on_start(self, request: RequestInfo, headers: Mapping[str, str]) -> None:
        if not request.operation:
            return
        span = self._tracer.start_span(
            request.operation,
            propagate.extract(dict(headers)),
            SpanKind.CLIENT,
            {"gen_ai.operation.name": request.operation, "gen_ai.provider.name": "openai", **self._server},
        )
        propagate.inject(request.upstream_headers, trace.set_span_in_context(span))
        self._spans[id(request)] = span

    def on_end(self, request: RequestInfo) -> None:
        span = self._spans.pop(id(request), None)
        if span is None:
            return
        if span.is_recording():
            if request.model:
                span.update_name(f"{request.operation} {request.model}")
            span.set_attributes(
                {key: value for key, value in self._list_attributes(request).items() if value not in ("", [])}
            )
            if kind := _find_error_type(request):
                span.set_attribute("error.type", kind)
                span.set_status(Status(StatusCode.ERROR))
        span.end()

    def close(self) -> None:
        """Export all pending spans."""
        self._provider.shutdown()

    def _list_attributes(self, request: RequestInfo) -> dict[str, Any]:
        stats = request.stats
        prompt, completion = stats.tokens or ("", "")
        return {
            "adapter.request_id": request.id,
            "adapter.route": request.route,
            "http.response.status_code": request.status,
            "gen_ai.request.model": request.model,
            "gen_ai.request.stream": True if request.is_stream else "",
            **{f"gen_ai.request.{name}": value for name, value in _list_request_attributes(request).items()},
            "gen_ai.response.model": stats.model,
            "gen_ai.response.id": stats.answer_id,
            "gen_ai.response.finish_reasons": stats.finish_reasons,
            "gen_ai.response.time_to_first_chunk": request.first_s if request.is_stream and request.first_s else "",
            "gen_ai.usage.input_tokens": prompt,
            "gen_ai.usage.output_tokens": completion,
            "adapter.format": request.format,
            "adapter.calls": stats.calls,
            "adapter.fixes": sorted(stats.fixes),
            "adapter.refused_calls": sorted(stats.rejected),
            "adapter.asked_again": sorted(stats.asked_again),
            "adapter.dropped_calls": sorted(stats.dropped),
            "adapter.left_out": request.dropped,
            "adapter.upstream_retries": request.retries or "",
        }


def _list_request_attributes(request: RequestInfo) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for field, (name, kind) in _REQUEST_ATTRIBUTES.items():
        value = request.sent.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            attributes[name] = kind(value)
    stop = request.sent.get("stop")
    stops = [stop] if isinstance(stop, str) else [each for each in stop or () if isinstance(each, str)]
    choices = request.sent.get("n")
    return attributes | {
        "stop_sequences": stops,
        "choice.count": choices if isinstance(choices, int) and choices != 1 else "",
    }


def _find_error_type(request: RequestInfo) -> str:
    """Return the attribute ``error.type`` of a request: the type of the client's error, the HTTP status, ``broken_off``
    if the response was cut off, or "" if the request succeeded."""
    if request.error:
        return request.error
    if request.status >= 400:
        return str(request.status)
    return "" if request.is_whole else "broken_off"


def build_trace_exporter(upstream: str, environment: Mapping[str, str]) -> TraceExporter:
    """Build the exporter configured by the ``OTEL_*`` variables. ``upstream`` is the base URL of the model server."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = environment.get("OTEL_SERVICE_NAME") or "toolcall-adapter"
    provider = TracerProvider(resource=Resource.create({"service.name": name, "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return TraceExporter(provider, upstream)
