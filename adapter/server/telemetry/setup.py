"""Create the metrics and the trace exporter. Their packages are imported only if the user enabled them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.core.errors import UsageError
from adapter.core.install_advice import build_install_command

if TYPE_CHECKING:
    from adapter.server.telemetry.metrics import Metrics
    from adapter.server.telemetry.traces import TraceExporter

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Environment variables that set the endpoint for traces."""

_EXPORTER = "opentelemetry.exporter.otlp.proto.http"
WORKERS_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the directory of the workers' metrics. prometheus_client reads it when it is imported."""


def make_metrics(is_enabled: bool) -> Metrics | None:
    if not is_enabled:
        return None
    from adapter.server.telemetry.metrics import Metrics

    folder = os.environ.get(WORKERS_DIR)
    return Metrics(Path(folder) if folder else None)


def make_traces(is_enabled: bool, upstream: str) -> TraceExporter | None:
    if not is_enabled:
        return None
    from adapter.server.telemetry.traces import build_trace_exporter

    return build_trace_exporter(upstream, os.environ)


def require_packages(metrics: bool, traces: bool) -> None:
    """Raise UsageError if a package for metrics or traces is missing."""
    for package, is_enabled, extra in (("prometheus_client", metrics, "metrics"), (_EXPORTER, traces, "otel")):
        if is_enabled and not _is_installed(package):
            raise UsageError(f"{package} is not installed: {build_install_command(extra)}")


def are_traces_enabled(requested: bool | None, environment: Mapping[str, str]) -> bool:
    """Return ``requested`` or, if it is None, whether an endpoint is configured and the package is installed."""
    if requested is not None:
        return requested
    return any(environment.get(name) for name in ENDPOINTS) and _is_installed(_EXPORTER)


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    try:
        return package in sys.modules or find_spec(package) is not None
    except ModuleNotFoundError:
        return False
