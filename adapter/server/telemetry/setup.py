"""Loads what a user asks to see, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.server.telemetry.metrics import Metrics
    from adapter.server.telemetry.traces import TraceExporter

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Variables that say where traces go."""

_EXPORTER = "opentelemetry.exporter.otlp.proto.http"
WORKERS_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the directory of several workers' counts; the library reads it when it is imported."""


def make_metrics(is_wanted: bool) -> Metrics | None:
    if not is_wanted:
        return None
    from adapter.server.telemetry.metrics import Metrics

    folder = os.environ.get(WORKERS_DIR)
    return Metrics(Path(folder) if folder else None)


def make_traces(is_wanted: bool, upstream: str) -> TraceExporter | None:
    if not is_wanted:
        return None
    from adapter.server.telemetry.traces import build_trace_exporter

    return build_trace_exporter(upstream, os.environ)


def require_packages(metrics: bool, traces: bool) -> None:
    """Raises UsageError where a package is not there."""
    for package, is_wanted, extra in (
        ("prometheus_client", metrics, "metrics"),
        (_EXPORTER, traces, "otel"),
    ):
        if is_wanted and not _is_there(package):
            raise UsageError(f"{package} is not installed: pip install 'toolcall-adapter[{extra}]'")


def traces_enabled(said: bool | None, environment: Mapping[str, str]) -> bool:
    """What the user says, else whether the variables say where traces go and the packages are there."""
    if said is not None:
        return said
    return any(environment.get(name) for name in ENDPOINTS) and _is_there(_EXPORTER)


def _is_there(package: str) -> bool:
    from importlib.util import find_spec

    try:
        return package in sys.modules or find_spec(package) is not None
    except ModuleNotFoundError:
        return False
