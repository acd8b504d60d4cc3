"""Settings of `adapter serve`: a field for each option, and the objects built from the options."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli import options as shared
from adapter.cli.options import define_option_group, option

if TYPE_CHECKING:
    from adapter.protocols.translation_options import TranslationOptions
    from adapter.server.app import ServerSettings


def _use_config_file(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        from adapter.cli.serve_config import use_config_file

        use_config_file(context, path)
    return path


_upstream = define_option_group("Model server", is_advanced=True)
_model = define_option_group("Model and prompt", is_advanced=True)
_clients = define_option_group("Clients", is_advanced=True)
_retry = define_option_group("Retries", is_advanced=True)
_process = define_option_group("Process and telemetry", is_advanced=True)


@dataclass(frozen=True)
class ServeSettings:
    """The options of `adapter serve`."""

    upstream: Annotated[
        str | None, option("URL", "Use the model server at this base URL.", show_default="detected")
    ] = None
    host: Annotated[
        str,
        option("NAME", "Listen on this address. Clients need a key unless only this machine can reach it."),
    ] = "127.0.0.1"
    port: Annotated[int, option("N", "Listen on this port; 0 picks a free one.", min=0, max=65535)] = 8090
    api_key: Annotated[
        str | None,
        option(
            "KEY",
            "Require this key from clients. If a key is needed and none is given, one is generated.",
            envvar="ADAPTER_API_KEY",
        ),
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        option("URL", "Accept requests from web pages of this origin, such as http://localhost:3000; repeatable."),
    ] = None
    trusted_host: Annotated[
        list[str] | None,
        _clients("NAME", "Accept requests for this host name, such as llm.example behind a reverse proxy; repeatable."),
    ] = None
    config: Annotated[
        Path | None,
        option(
            "FILE",
            "Read options, such as max-streams = 4, and per-model settings from this TOML file. ADAPTER_* variables "
            "take precedence.",
            callback=_use_config_file,
            is_eager=True,
        ),
    ] = None
    format: shared.Format = "auto"
    constraint: Annotated[str, option("MODE", shared.CONSTRAINT_HELP)] = "auto"
    record: Annotated[
        Path | None, option("FILE", "Append every prompt and response to this .jsonl file; API keys are removed.")
    ] = None
    view: Annotated[bool, option("", "Show exchanges live on a web page and print its address.", "--view")] = False
    workers: Annotated[
        int, _process("N", "Run N worker processes; all limits apply to each process separately.", min=1, max=256)
    ] = 1
    patience: Annotated[
        float,
        _upstream(
            "SECONDS",
            "Fail a request if the model server sends nothing for this long, before or during its answer.",
            min=0.05,
        ),
    ] = 600.0
    retry: Annotated[
        float, _upstream("SECONDS", "Retry a request for this long while the model server is loading or busy.", min=0)
    ] = 15.0
    max_streams: Annotated[
        int,
        _upstream("N", "Send at most N concurrent requests to the model server, and queue the others.", min=1),
    ] = 256
    max_waiting: Annotated[
        int, _upstream("N", "Queue at most N requests, and refuse the others with status 503.", min=0)
    ] = 1024
    pass_admin: Annotated[
        bool,
        _upstream(
            "",
            "Also pass through requests that manage the model server, such as loading or deleting models.",
            "--pass-admin",
        ),
    ] = False
    style: Annotated[
        str,
        _model(
            "NAME",
            f"Describe tools in a generated prompt in this style: {shared.STYLES_HELP}, small (only names), "
            "bare (JSON without example) or auto.",
        ),
    ] = "auto"
    prompts: Annotated[Path | None, _model("DIR", shared.PROMPTS_HELP)] = None
    prompt: Annotated[str, _model("MODE", shared.PROMPT_HELP)] = "auto"
    template: Annotated[Path | None, _model("FILE", shared.TEMPLATE_HELP)] = None
    policy: Annotated[str, _model("NAME", shared.POLICY_HELP)] = "safe"
    grounded: Annotated[
        bool,
        _model(
            "",
            "Limit the paths, patterns and commands in constrained calls to values that occur in the conversation.",
            "--grounded",
        ),
    ] = False
    guide: Annotated[str, _model("MODE", shared.GUIDE_HELP)] = "auto"
    max_tools: Annotated[
        int | None,
        _model(
            "N",
            "Describe only the N tools that are most relevant to a request, and a tool that searches the others.",
            min=1,
        ),
    ] = None
    context_budget: Annotated[str, _model("TOKENS", shared.CONTEXT_BUDGET_HELP)] = "off"
    reasoning_budget: Annotated[
        int | None, _model("TOKENS", "End the reasoning of an answer after this many tokens.", min=0)
    ] = None
    profile: Annotated[str, _model("NAME", shared.PROFILE_HELP)] = "auto"
    guardrails: Annotated[str, _retry("NAMES", shared.GUARDRAILS_HELP)] = "on"
    retries: Annotated[int, _retry("N", shared.RETRIES_HELP, min=0)] = 2
    max_calls: Annotated[int, _retry("N", "Use at most N calls of an answer, and drop the others.", min=1)] = 8
    retry_tokens: Annotated[
        int, _retry("N", "Stop retrying once the discarded answers to a request add up to N tokens.", min=0)
    ] = 4_096
    retry_seconds: Annotated[
        float, _retry("SECONDS", "Stop retrying a request when it has taken this long.", min=0)
    ] = 120.0
    stream_arguments: Annotated[
        bool,
        _clients("", "Stream the arguments of a call while the model writes them.", "--stream-arguments"),
    ] = False
    store: Annotated[
        Path | None,
        _clients(
            "FILE",
            "Store the responses of the Responses API in this file; API keys are removed.",
            show_default="only in memory",
        ),
    ] = None
    keep_alive: Annotated[
        float, _clients("SECONDS", "Send the client a keepalive after this much silence.", min=0.05)
    ] = 5.0
    stall: Annotated[float, _clients("SECONDS", "Disconnect a client that reads nothing for this long.", min=0.05)] = (
        60.0
    )
    drain: Annotated[
        float, _process("SECONDS", "Give responses in progress this long to finish after SIGTERM.", min=0)
    ] = 25.0
    metrics: Annotated[
        bool, _process("", "Serve Prometheus metrics at /metrics; requires the `metrics` extra.", "--metrics")
    ] = False
    otel: Annotated[
        bool | None,
        _process(
            "",
            "Send OpenTelemetry traces; requires the `otel` extra.",
            "--otel/--no-otel",
            show_default="on if an OTLP endpoint is set in the environment",
        ),
    ] = None
    log_json: Annotated[bool, _process("", "Write the log as JSON, one line per request.", "--log-json")] = False

    def build_options(self) -> TranslationOptions:
        """Build the options for translating requests and responses. Raises UsageError for an invalid option."""
        from adapter.cli.serve_config import read_model_budgets, read_model_setups
        from adapter.core.text.redaction import Redactor
        from adapter.protocols.exchange_guardrails import RetryPolicy
        from adapter.protocols.token_budgets import parse_context_budget
        from adapter.protocols.translation_options import SHARED_SETTINGS, build_options
        from adapter.recording.exchange_log import ExchangeLog

        return build_options(
            **{name: getattr(self, name) for name in SHARED_SETTINGS},
            prompts=str(self.prompts) if self.prompts else None,
            grounded=self.grounded,
            context_budget=parse_context_budget(self.context_budget),
            limits=RetryPolicy(
                tokens=self.retry_tokens,
                seconds=self.retry_seconds,
                clock=time.monotonic,
                max_calls=self.max_calls,
            ),
            observe=ExchangeLog(self.record, Redactor(os.environ, [self.api_key])) if self.record else None,
            model_budgets=read_model_budgets(self.config),
            setups=read_model_setups(self.config),
        )

    def build_server_settings(self) -> ServerSettings:
        """Build the server's settings. Raises UsageError for an invalid option, or if no model server is found."""
        from adapter.backends.endpoint_discovery import build_api_url, find_endpoint
        from adapter.backends.probe_profiles import validate_profile_name
        from adapter.backends.template_files import load_chat_template
        from adapter.server.app import ServerSettings
        from adapter.server.telemetry.setup import are_traces_enabled

        options = self.build_options()
        validate_profile_name(self.profile)
        return ServerSettings(
            build_api_url(self.upstream) if self.upstream else find_endpoint().base_url,
            self.host,
            self.port,
            keep_alive_s=self.keep_alive,
            patience_s=self.patience,
            api_key=self.api_key,
            options=options,
            profile=self.profile,
            max_streams=self.max_streams,
            max_waiting=self.max_waiting,
            stall_s=self.stall,
            template=load_chat_template(self.template) if self.template else None,
            store=self.store,
            retry_s=self.retry,
            origins=tuple(each.rstrip("/") for each in self.allow_origin or ()),
            trusted_hosts=tuple(self.trusted_host or ()),
            pass_admin=self.pass_admin,
            workers=self.workers,
            drain_s=self.drain,
            metrics=self.metrics,
            traces=are_traces_enabled(self.otel, os.environ),
            log_json=self.log_json,
            view=self.view,
        )
