"""Observability: ids, metrics, traces, JSON logs and readiness."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.command_line import started
from tests.http_requests import send
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.test_wrap import TOOLS, completion
from tests.serving import serving

pytest.importorskip("prometheus_client", reason="needs the extra metrics: pip install 'toolcall-adapter[metrics]'")

CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py",}}\n</tool_call>'
USAGE = {"usage": {"prompt_tokens": 30, "completion_tokens": 12}}


def ask(url: str, path: str = CHAT, headers: dict[str, str] | None = None, **fields: Any) -> tuple[int, Any, str]:
    """Return status, headers and text of an answer; a GET without fields."""
    body = {"model": "qwen3", "messages": [{"role": "user", "content": "Hi"}], **fields}
    return send(url, path, body if fields else None, headers)


def samples(text: str) -> dict[str, float]:
    """Return the values of a scrape by name with labels."""
    return {name: float(value) for name, value in re.findall(r"^(adapter_\S*(?:\{.*\})?) (\S+)$", text, re.MULTILINE)}


@pytest.fixture(scope="module")
def watched():
    with ScriptedServer() as upstream, serving(f"{upstream.url}/v1", "--metrics", "--retry", "5") as url:
        yield upstream, url


def test_metrics_count_request_outcomes(watched):
    """Calls, fixes, rejected calls, tokens, speed and dropped fields, each under its name."""
    upstream, url = watched
    said = as_stream(delta("`<tool_call>` it is. "), delta(CALL), delta(finish_reason="stop"), {"choices": [], **USAGE})
    upstream.on(CHAT, said)
    status, _, text = ask(url, tools=TOOLS, stream=True)
    assert status == 200
    assert "usage" not in text  # which the client did not ask for, and the server was
    assert upstream.bodies()[-1]["stream_options"] == {"include_usage": True}
    assert ask(url, "/v1/responses", input="Hi", truncation="auto", tools=[])[0] == 502
    seen = samples(ask(url, "/metrics")[2])
    expected = {
        'adapter_requests_total{route="/v1/chat/completions",status="200"}': 1,
        'adapter_requests_total{route="/v1/responses",status="502"}': 1,
        'adapter_calls_total{format="hermes",model="qwen3"}': 1,
        'adapter_fixes_total{fix="trailing-comma"}': 1,
        'adapter_refused_calls_total{reason="inline-code"}': 1,
        'adapter_tokens_total{kind="prompt",model="qwen3"}': 30,
        'adapter_tokens_total{kind="completion",model="qwen3"}': 12,
        'adapter_first_piece_seconds_count{route="/v1/chat/completions"}': 1,
        'adapter_request_seconds_count{route="/v1/chat/completions"}': 1,
        'adapter_left_out_total{name="truncation"}': 1,
        "adapter_places_taken": 0,
        "adapter_places_waited_for": 0,
        'adapter_requests_open{operation="chat"}': 0,
    }
    assert {name: seen.get(name) for name in expected} == expected
    assert seen["adapter_tokens_per_second_count"] == 1


def test_passthrough_counts_tokens(watched):
    """A chat without tools passes through, and its end contains the usage."""
    upstream, url = watched
    before = samples(ask(url, "/metrics")[2]).get('adapter_tokens_total{kind="completion",model="plain"}', 0)
    upstream.replies.pop(CHAT, None)
    upstream.on(CHAT, as_json(200, completion('"completion_tokens": 99') | USAGE))
    assert ask(url, model="plain", stream=False)[0] == 200
    after = samples(ask(url, "/metrics")[2])['adapter_tokens_total{kind="completion",model="plain"}']
    assert after - before == 12


def test_busy_upstream_counts_retries(watched):
    """A 503 and then an answer count as one retry."""
    upstream, url = watched
    before = samples(ask(url, "/metrics")[2])["adapter_upstream_retries_total"]
    upstream.replies.pop(CHAT, None)
    upstream.on(CHAT, as_error(503, "loading"), as_json(200, completion("Hello")))
    assert ask(url, tools=TOOLS)[0] == 200
    assert samples(ask(url, "/metrics")[2])["adapter_upstream_retries_total"] - before == 1


def test_label_values_are_bounded():
    """The first hundred are kept; unsafe characters are replaced, and a scrape never fails."""
    from adapter.protocols.usage import Usage
    from adapter.server.telemetry.metrics import MAX_NAMES, Metrics
    from adapter.server.telemetry.request_info import RequestInfo

    metrics = Metrics()
    for number in range(3 * MAX_NAMES):
        seen = RequestInfo(method="POST", path=CHAT, status=200, model=f'm{number}\ud83d"\n{{}}', is_whole=True)
        seen.stats.count(Usage(7, 3))
        seen.dropped.append(f"tool {number}")
        metrics.on_start(seen, {})
        metrics.on_end(seen)
    metrics.on_start(unknown := RequestInfo(path=CHAT, status=404, model="never-there"), {})
    metrics.on_end(unknown)
    text = metrics.render_text().decode()
    assert text.count('adapter_tokens_total{kind="prompt"') == MAX_NAMES + 1
    assert text.count("adapter_left_out_total{") == MAX_NAMES + 1
    assert 'model="m0?????"' in text
    assert "never-there" not in text


def test_metrics_require_api_key():
    """Model names and usage are private; `/health` and `/ready` contain neither."""
    with (
        ScriptedServer().on(MODELS, as_json(200, {"data": []})) as upstream,
        serving(f"{upstream.url}/v1", "--metrics", "--api-key", "sesame") as url,
    ):
        assert ask(url, "/metrics")[0] == 401
        assert ask(url, "/metrics", {"Authorization": "Bearer sesame"})[0] == 200
        assert [ask(url, path)[0] for path in ("/health", "/ready")] == [200, 200]


def test_ready_reports_upstream_state(watched):
    """`/health` reports the process, `/ready` the model server."""
    upstream, url = watched
    assert (ask(url, "/health")[0], ask(url, "/ready")[0]) == (200, 503)
    upstream.on(MODELS, as_json(200, {"data": []}))
    assert ask(url, "/ready")[0] == 200
    upstream.replies.pop(MODELS)


@pytest.mark.parametrize(
    ("given", "is_taken"), [("trace-1:a/b", True), ("", False), ("no spaces", False), ("x" * 129, False), ("é", False)]
)
def test_request_id_is_shared(watched, given, is_taken):
    """The client's if it is a plain word; response and model server get the same, once."""
    upstream, url = watched
    upstream.replies.pop(CHAT, None)
    upstream.on(CHAT, as_json(200, completion("Hello")))
    for fields in ({"tools": TOOLS}, {"stream": False}):
        _, headers, _ = ask(url, headers={"X-Request-Id": given} if given else {}, **fields)
        ids = headers.get_all("x-request-id")
        assert len(ids) == 1
        assert (ids[0] == given) is is_taken
        handed = [asked for path, asked, _ in upstream.requests if path == CHAT]
        assert handed[-1]["x-request-id"] == ids[0]


def test_json_log_lines_contain_request_id():
    """Each line is one object, including those at the start; a model's name cannot break a line."""
    with ScriptedServer() as upstream:
        upstream.on(CHAT, as_stream(delta(CALL), delta(finish_reason="stop")))
        with started("serve", "--upstream", f"{upstream.url}/v1", "--port", "0", "--log-json") as run:
            first = json.loads(run.first_lines())
            url = re.search(r"http://\S+/v1", first["message"])
            assert url is not None
            ask(url[0], headers={"X-Request-Id": "r1"}, model='a"\n\x1b[31mb', tools=TOOLS, stream=True)
            run.process.terminate()
            run.process.join()
            lines = [json.loads(line) for line in run.stderr.read_text(encoding="utf-8").splitlines()]
    (request,) = [line for line in lines if line.get("route")]
    assert (request["request_id"], request["route"], request["status"]) == ("r1", "/v1/chat/completions", 200)
    assert (request["calls"], request["fixes"], request["model"]) == (1, {"trailing-comma": 1}, 'a"\n\x1b[31mb')
    assert all({"time", "level", "message"} <= line.keys() for line in lines)


def spans_of(upstream: ScriptedServer, *requests: dict[str, Any]) -> list[Any]:
    """Return the spans of ``requests`` to a server in this process."""
    import httpx
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from adapter.server.app import ServerSettings, create_app
    from adapter.server.telemetry.traces import TraceExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(ServerSettings(f"{upstream.url}/v1"), TraceExporter(provider, f"{upstream.url}/v1"))

    async def run() -> None:
        done, begun = asyncio.Event(), asyncio.Event()

        async def receive() -> dict[str, str]:
            if begun.is_set():
                await done.wait()
                return {"type": "lifespan.shutdown"}
            return {"type": "lifespan.startup"}

        async def send(_: Any) -> None:
            begun.set()

        life: asyncio.Task[None] = asyncio.create_task(app({"type": "lifespan", "state": {}}, receive, send))  # type: ignore[arg-type]
        await begun.wait()
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for request in requests:
                await client.post(**request)
        done.set()
        await life

    asyncio.run(run())
    provider.shutdown()
    return list(exporter.get_finished_spans())


def test_span_follows_semantic_conventions():
    """It continues the client's trace, is propagated to the model server, and contains no texts."""
    pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel: pip install 'toolcall-adapter[otel]'")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "the secret word"}],
        "tools": TOOLS,
        "stream": True,
        "temperature": 0,
        "max_tokens": 50,
        "stop": "END",
    }
    with ScriptedServer() as upstream:
        upstream.on(CHAT, as_stream(delta(CALL), delta(finish_reason="stop"), {"choices": [], **USAGE}))
        span, failed = spans_of(
            upstream,
            {"url": CHAT, "json": body, "headers": {"traceparent": parent}},
            {"url": "/v1/models", "json": {}},  # no work of a model
            {"url": "/v1/embeddings", "json": {"model": "e", "input": "x"}},
        )
        handed = next(headers for path, headers, _ in upstream.requests if path == CHAT)["traceparent"]
    assert (span.name, span.kind.name, f"{span.context.trace_id:032x}") == ("chat qwen3", "CLIENT", parent[3:35])
    assert handed == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"
    said = dict(span.attributes)
    assert said.pop("gen_ai.response.time_to_first_chunk") > 0
    assert len(said.pop("adapter.request_id")) == 32
    assert said == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "server.address": "127.0.0.1",
        "server.port": int(upstream.url.rpartition(":")[2]),
        "http.response.status_code": 200,
        "gen_ai.request.model": "qwen3",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.stop_sequences": ("END", "<|im_end|>"),
        "gen_ai.response.model": "m",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
        "adapter.route": "/v1/chat/completions",
        "adapter.format": "hermes",
        "adapter.calls": 1,
        "adapter.fixes": ("trailing-comma",),
    }
    assert (failed.name, failed.attributes["error.type"], failed.status.status_code.name) == (
        "embeddings",
        "404",
        "ERROR",
    )


def test_spans_reach_collector(monkeypatch):
    """By OTLP to the configured endpoint, all before the server has stopped."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    contents: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            contents.append(gzip.decompress(content) if self.headers["Content-Encoding"] == "gzip" else content)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector, ScriptedServer() as upstream:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        upstream.on(CHAT, as_stream(delta(CALL), delta(finish_reason="stop")))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_address[1]}")
        with serving(f"{upstream.url}/v1") as url:
            ask(url, tools=TOOLS, stream=True)
        collector.shutdown()
    (resource,) = [
        each for content in contents for each in ExportTraceServiceRequest.FromString(content).resource_spans
    ]
    assert [span.name for scope in resource.scope_spans for span in scope.spans] == ["chat qwen3"]
    assert "toolcall-adapter" in [each.value.string_value for each in resource.resource.attributes]
