"""docs/grafana.json queries existing metrics, and a real Prometheus can answer its queries."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scripted_server import CHAT, ScriptedServer, as_stream, delta
from tests.server.test_telemetry import CALL, USAGE, ask
from tests.server.test_wrap import TOOLS
from tests.serving import serving

pytest.importorskip("prometheus_client", reason="needs the extra metrics: pip install 'toolcall-adapter[metrics]'")

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "grafana.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
_METRIC = re.compile(r"\b(?:adapter|process)_\w+")


def names_there_are() -> set[str]:
    """Return all names that a scrape can contain, including the names for events that have not occurred."""
    from adapter.server.telemetry.metrics import Metrics

    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    text = Metrics().render_text().decode()
    types = re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)
    return {name.removesuffix("_total") + ending for name, kind in types for ending in endings.get(kind, ())}


def test_dashboard_queries_existing_metrics():
    """And it uses every metric."""
    asked = {name for query in QUERIES for name in _METRIC.findall(query)}
    there = names_there_are()
    assert asked - there == set()
    ours = {re.sub(r"_(?:total|bucket|sum|count)$", "", name) for name in there if name.startswith("adapter_")}
    assert ours - {re.sub(r"_(?:total|bucket)$", "", name) for name in asked} == set()


def test_docs_list_every_metric():
    """docs/operations.md describes every metric, and no other."""
    page = set(re.findall(r"`(adapter_\w+)`", (DOCS / "operations.md").read_text(encoding="utf-8")))
    there = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in names_there_are() if name.startswith("adapter_")}
    assert page == there


@contextmanager
def prometheus(target: str, folder: Path) -> Iterator[str]:
    """Yield the address of a Prometheus that scrapes ``target`` every second."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    scrape = {"job_name": "adapter", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"scrape_configs": [scrape]}), encoding="utf-8")
    options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with subprocess.Popen(["prometheus", *options], stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://{address}"
        finally:
            process.terminate()


def answer(url: str, query: str) -> Any:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?query={urllib.parse.quote(query)}", timeout=100) as response:
            return json.load(response)
    except OSError:
        return {"status": "not there yet", "data": {"result": []}}


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus: apt-get install prometheus")
def test_real_prometheus_answers_dashboard(tmp_path):
    """It scrapes, counts requests and accepts every query of the dashboard."""
    with ScriptedServer() as upstream:
        upstream.on(CHAT, as_stream(delta(CALL), delta(finish_reason="stop"), {"choices": [], **USAGE}))
        with serving(f"{upstream.url}/v1", "--metrics") as url:
            for _ in range(3):
                ask(url, tools=TOOLS, stream=True)
            with prometheus(urllib.parse.urlsplit(url).netloc, tmp_path) as server:
                query = 'sum by (model, format) (adapter_calls_total{job="adapter"})'
                deadline = time.monotonic() + 100
                while not (found := answer(server, query)["data"]["result"]) and time.monotonic() < deadline:
                    time.sleep(0.2)
                assert [(each["metric"], each["value"][1]) for each in found] == [
                    ({"model": "qwen3", "format": "hermes"}, "3")
                ]
                for expression in QUERIES:
                    filled = expression.replace("$job", ".*").replace("$__rate_interval", "1m")
                    assert answer(server, filled)["status"] == "success", expression
