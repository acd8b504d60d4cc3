"""`adapter serve`: an OpenAI-compatible server that adds tool calling to a model server."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from adapter.cli import options as shared
from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.cli.options import define_settings_group, setting, takes_settings
from adapter.core.errors import UsageError
from adapter.core.install_advice import build_install_command

if TYPE_CHECKING:
    from adapter.protocols.translation_options import TranslationOptions
    from adapter.server.app import ServerSettings


def _use_config_file(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        from adapter.cli.serve_config import use_config_file

        use_config_file(context, path)
    return path


_upstream = define_settings_group("Model server", is_advanced=True)
_model = define_settings_group("Model and prompt", is_advanced=True)
_clients = define_settings_group("Clients", is_advanced=True)
_retry = define_settings_group("Retries", is_advanced=True)
_process = define_settings_group("Process and telemetry", is_advanced=True)


_ORIGIN, _HOST = r"null|[\w+.-]+://[^/*\s]+/?", r"[^/*\s]+"


@dataclass(frozen=True)
class ServeSettings:
    """The options of `adapter serve`."""

    upstream: str | None = setting(None, "URL", "Use the model server at this base URL.", show_default="detected")
    host: str = setting(
        "127.0.0.1", "NAME", "Listen on this address. Clients need a key unless only this machine can reach it."
    )
    port: int = setting(8090, "N", "Listen on this port; 0 picks a free one.", min=0, max=65535)
    api_key: str | None = setting(
        None,
        "KEY",
        "Require this key from clients. If a key is needed and none is given, one is generated.",
        envvar="ADAPTER_API_KEY",
    )
    allow_origin: list[str] | None = setting(
        None, "URL", "Accept requests from web pages of this origin, such as http://localhost:3000; repeatable."
    )
    trusted_host: list[str] | None = _clients(
        None, "NAME", "Accept requests for this host name, such as llm.example behind a reverse proxy; repeatable."
    )
    config: Path | None = setting(
        None,
        "FILE",
        "Read options, such as max-streams = 4, and per-model settings from this TOML file. ADAPTER_* variables "
        "take precedence.",
        callback=_use_config_file,
        is_eager=True,
    )
    format: shared.Format = "auto"
    constraint: str = setting("auto", "MODE", shared.CONSTRAINT_HELP)
    record: Path | None = setting(
        None, "FILE", "Append every prompt and answer to this .jsonl file; API keys are removed."
    )
    view: bool = setting(False, "", "Show exchanges live on a web page and print its address.", "--view")
    workers: int = _process(
        1, "N", "Run N worker processes; all limits apply to each process separately.", min=1, max=256
    )
    patience: float = _upstream(
        600.0,
        "SECONDS",
        "Fail a request if the model server sends nothing for this long, before or during its answer.",
        min=0.05,
    )
    retry: float = _upstream(
        15.0, "SECONDS", "Retry a request for this long while the model server is loading or busy.", min=0
    )
    max_streams: int = _upstream(
        256, "N", "Send at most N concurrent requests to the model server, and queue the others.", min=1
    )
    max_waiting: int = _upstream(1024, "N", "Queue at most N requests, and refuse the others with status 503.", min=0)
    pass_admin: bool = _upstream(
        False,
        "",
        "Also pass through requests that manage the model server, such as loading or deleting models.",
        "--pass-admin",
    )
    style: str = _model(
        "auto",
        "NAME",
        f"Describe tools in a generated prompt in this style: {shared.STYLES_HELP}, small (only names), "
        "bare (JSON without an example) or auto.",
    )
    prompts: Path | None = _model(None, "DIR", shared.PROMPTS_HELP)
    prompt: str = _model("auto", "MODE", shared.PROMPT_HELP)
    template: Path | None = _model(None, "FILE", shared.TEMPLATE_HELP)
    policy: str = _model("safe", "NAME", shared.POLICY_HELP)
    grounded: bool = _model(
        False,
        "",
        "Limit the paths, patterns and commands in constrained calls to values that occur in the conversation.",
        "--grounded",
    )
    guide: str = _model("auto", "MODE", shared.GUIDE_HELP)
    max_tools: int | None = _model(
        None,
        "N",
        "Describe only the N tools that are most relevant to a request, and a tool that searches the others.",
        min=1,
    )
    context_budget: str = _model("off", "TOKENS", shared.CONTEXT_BUDGET_HELP)
    reasoning_budget: int | None = _model(None, "TOKENS", "End an answer's reasoning after this many tokens.", min=0)
    profile: str = _model("auto", "NAME", shared.PROFILE_HELP)
    guardrails: str = _retry("on", "NAMES", shared.GUARDRAILS_HELP)
    retries: int = _retry(2, "N", shared.RETRIES_HELP, min=0)
    max_calls: int = _retry(8, "N", "Use at most N calls in an answer, and drop the others.", min=1)
    retry_tokens: int = _retry(
        4_096, "N", "Stop retrying once the discarded answers to a request add up to N tokens.", min=0
    )
    retry_seconds: float = _retry(120.0, "SECONDS", "Stop retrying a request when it has taken this long.", min=0)
    stream_arguments: bool = _clients(
        False, "", "Stream the arguments of a call while the model writes them.", "--stream-arguments"
    )
    store: Path | None = _clients(
        None,
        "FILE",
        "Store the responses of the Responses API in this file; API keys are removed.",
        show_default="only in memory",
    )
    keep_alive: float = _clients(5.0, "SECONDS", "Send the client a keepalive after this much silence.", min=0.05)
    stall: float = _clients(60.0, "SECONDS", "Disconnect a client that reads nothing for this long.", min=0.05)
    drain: float = _process(25.0, "SECONDS", "Give responses in progress this long to finish after SIGTERM.", min=0)
    metrics: bool = _process(
        False, "", "Serve Prometheus metrics at /metrics; requires the `metrics` extra.", "--metrics"
    )
    otel: bool | None = _process(
        None,
        "",
        "Send OpenTelemetry traces; requires the `otel` extra.",
        "--otel/--no-otel",
        show_default="on if an OTLP endpoint is set in the environment",
    )
    log_json: bool = _process(False, "", "Write the log as JSON, one line per request.", "--log-json")

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
                tokens=self.retry_tokens, seconds=self.retry_seconds, clock=time.monotonic, max_calls=self.max_calls
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
            origins=_check_hosts(
                self.allow_origin, _ORIGIN, "--allow-origin", "an origin, such as http://localhost:3000"
            ),
            trusted_hosts=_check_hosts(
                self.trusted_host, _HOST, "--trusted-host", "a host name without wildcards, such as llm.example"
            ),
            pass_admin=self.pass_admin,
            workers=self.workers,
            drain_s=self.drain,
            metrics=self.metrics,
            traces=are_traces_enabled(self.otel, os.environ),
            log_json=self.log_json,
            view=self.view,
        )


def _find_misspelled_variables() -> Iterator[str]:
    """Yield a warning for each variable that resembles an option's, such as ``ADAPTER_MAX_STREAM``."""
    known = [each.name.upper() for each in fields(ServeSettings)]
    for name in sorted(each.removeprefix("ADAPTER_") for each in os.environ if each.startswith("ADAPTER_")):
        if name not in known and (near := get_close_matches(name, known, 1, 0.8)):
            yield f"warning: ADAPTER_{name} has no effect; did you mean ADAPTER_{near[0]}?"


def _check_hosts(values: list[str] | None, pattern: str, option: str, expected: str) -> tuple[str, ...]:
    """Return the values of ``option`` without a slash at the end. Raises UsageError if one would match no request."""
    for value in values or ():
        if not re.fullmatch(pattern, value):
            raise UsageError(f"invalid {option} {value!r}; expected {expected}")
    return tuple(each.rstrip("/") for each in values or ())


@takes_settings(ServeSettings)
def serve(settings: ServeSettings) -> None:
    """Serve an OpenAI-compatible API that adds tool calling."""
    try:
        from adapter.server.app import serve as run_server
        from adapter.server.telemetry.logs import log_message
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: {build_install_command('server')}") from error

    limit_malloc_arenas()
    for note in _find_misspelled_variables():
        log_message(note)
    run_server(settings.build_server_settings())
