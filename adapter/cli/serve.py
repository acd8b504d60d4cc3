"""`adapter serve`: the OpenAI interface with tool calls, in front of a server that only knows text."""

from __future__ import annotations

import os
import time

from adapter.cli import serve_options as given
from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.core.errors import UsageError


def serve(
    upstream: given.Upstream = None,
    patience: given.Patience = 600.0,
    retry: given.Retry = 15.0,
    max_streams: given.MaxStreams = 256,
    max_waiting: given.MaxWaiting = 1024,
    pass_admin: given.PassAdmin = False,
    format: given.Format = "auto",
    style: given.Style = "auto",
    prompts: given.Prompts = None,
    prompt: given.Prompt = "auto",
    template: given.Template = None,
    policy: given.Policy = "safe",
    constraint: given.Constraint = "auto",
    grounded: given.Grounded = False,
    guide: given.Guide = "auto",
    max_tools: given.MaxTools = None,
    guardrails: given.Guardrails = "on",
    retries: given.Retries = 2,
    retry_tokens: given.RetryTokens = 4_096,
    retry_seconds: given.RetrySeconds = 120.0,
    profile: given.Profile = "auto",
    host: given.Host = "127.0.0.1",
    port: given.Port = 8090,
    api_key: given.ApiKey = None,
    allow_origin: given.AllowOrigin = None,
    stream_arguments: given.StreamArguments = False,
    store: given.StoreFile = None,
    keep_alive: given.KeepAlive = 5.0,
    stall: given.Stall = 60.0,
    record: given.Record = None,
    workers: given.Workers = 1,
    drain: given.DrainSeconds = 25.0,
    metrics: given.Metrics = False,
    otel: given.Otel = None,
    log_json: given.LogJson = False,
    view: given.View = False,
) -> None:
    """Serve the OpenAI interface with tool calls, in front of a model server that only knows text."""
    from adapter.backends.endpoint_discovery import api_url, find_endpoint
    from adapter.backends.profiles import validate_profile_name as check_profile
    from adapter.backends.template_files import load_chat_template
    from adapter.conversation.guardrails.registry import parse_guardrails
    from adapter.core.text.redaction import Redactor
    from adapter.grammars.constraint_mode import parse_constraint_mode
    from adapter.protocols.guarded_exchange import RetryPolicy
    from adapter.protocols.recorded_exchange import Observation
    from adapter.protocols.translation_options import (
        ConstraintSettings,
        PromptSettings,
        TranslationOptions,
        validate_options,
    )
    from adapter.recording.exchange_log import ExchangeLog

    try:
        from adapter.server.app import ServerSettings
        from adapter.server.app import serve as run_server
        from adapter.server.telemetry.setup import traces_enabled
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'toolcall-adapter[server]'") from error

    options = TranslationOptions(
        prompt=PromptSettings(
            format=None if format == "auto" else format,
            style=None if style == "auto" else style,
            prompts=str(prompts) if prompts else None,
            mode=prompt,
            max_tools=max_tools,
        ),
        constraints=ConstraintSettings(
            mode=parse_constraint_mode(None if constraint == "auto" else constraint), grounded=grounded
        ),
        observation=Observation(observe=ExchangeLog(record, Redactor(os.environ, [api_key])) if record else None),
        policy=policy,
        stream_arguments=stream_arguments,
        guide=guide,
        retry_policy=RetryPolicy(parse_guardrails(guardrails), retries, retry_tokens, retry_seconds, time.monotonic),
    )
    check_profile(profile)
    limit_malloc_arenas()
    base_url = api_url(upstream) if upstream else find_endpoint().base_url
    named = load_chat_template(template) if template else None
    run_server(
        ServerSettings(
            base_url,
            host,
            port,
            keep_alive_s=keep_alive,
            patience_s=patience,
            api_key=api_key,
            options=validate_options(options),
            profile=profile,
            max_streams=max_streams,
            max_waiting=max_waiting,
            stall_s=stall,
            template=named,
            store=store,
            retry_s=retry,
            origins=tuple(each.rstrip("/") for each in allow_origin or ()),
            pass_admin=pass_admin,
            workers=workers,
            drain_s=drain,
            metrics=metrics,
            traces=traces_enabled(otel, os.environ),
            log_json=log_json,
            view=view,
        )
    )
