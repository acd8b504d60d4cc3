"""`adapter serve`: the OpenAI interface with tool calls, in front of a server that only knows text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from adapter.commands.allocator import share_one_arena
from adapter.commands.options import ConstraintOption, GuideOption, ProfileOption, PromptOption, TemplateOption
from adapter.values.errors import UsageError


def serve(
    upstream: Annotated[str | None, typer.Option(help="The model server; found by itself when left out.")] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; with another than this machine's, clients need a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8090,
    format: Annotated[
        str, typer.Option(help="How the model writes calls; auto goes by its template and name.")
    ] = "auto",
    style: Annotated[
        str, typer.Option(help="How the prompt describes tools: trained, full, compact, small or bare; auto decides.")
    ] = "auto",
    prompts: Annotated[Path | None, typer.Option(help="A folder with prompt templates of your own.")] = None,
    prompt: PromptOption = "auto",
    template: TemplateOption = None,
    policy: Annotated[str, typer.Option(help="Which text may become a call: strict, safe or lenient.")] = "safe",
    stream_arguments: Annotated[
        bool, typer.Option("--stream-arguments", help="Send a call's arguments while they are written.")
    ] = False,
    constraint: ConstraintOption = "auto",
    grounded: Annotated[
        bool, typer.Option("--grounded", help="Enforced calls take paths, patterns and commands from the conversation.")
    ] = False,
    guide: GuideOption = "auto",
    profile: ProfileOption = "auto",
    keep_alive: Annotated[float, typer.Option(min=0.05, help="Seconds of silence before a sign of life.")] = 5.0,
    patience: Annotated[float, typer.Option(min=0.05, help="Seconds that the model server may stay silent.")] = 600.0,
    retry: Annotated[
        float, typer.Option(min=0, help="Seconds in which a model server that loads or is busy is asked again.")
    ] = 15.0,
    record: Annotated[
        Path | None,
        typer.Option(help="Add what the model is sent and writes to this .jsonl file, without credentials."),
    ] = None,
    max_streams: Annotated[
        int, typer.Option(min=1, help="Requests that the model server answers at a time; more wait for their turn.")
    ] = 256,
    max_waiting: Annotated[int, typer.Option(min=0, help="Requests that may wait; one more is refused (503).")] = 1024,
    stall: Annotated[float, typer.Option(min=0.05, help="Seconds in which a client may take nothing.")] = 60.0,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="ADAPTER_API_KEY",
            help="What clients must send; made up when left out and --host is not this machine.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Pages that may ask, http://localhost:3000 say; can be given again.")
    ] = None,
    pass_admin: Annotated[
        bool, typer.Option("--pass-admin", help="Pass on everything, also what manages the model server.")
    ] = False,
) -> None:
    """Serve the OpenAI interface with tool calls, in front of a model server that only knows text."""
    from adapter.constraints.modes import get_constraint
    from adapter.probing.profiles import check as check_profile
    from adapter.text.secrets import Secrets
    from adapter.transcripts.exchanges import ExchangeLog
    from adapter.upstream.endpoints import api_url, find_endpoint
    from adapter.upstream.template_files import read_template
    from adapter.wire.request import Options, checked

    try:
        from adapter.server.app import Settings
        from adapter.server.app import serve as run_server
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'toolcall-adapter[server]'") from error

    options = Options(
        format=None if format == "auto" else format,
        style=None if style == "auto" else style,
        prompts=str(prompts) if prompts else None,
        prompt=prompt,
        policy=policy,
        stream_arguments=stream_arguments,
        constraint=get_constraint(None if constraint == "auto" else constraint),
        grounded=grounded,
        guide=guide,
        observe=ExchangeLog(record, Secrets(os.environ, [api_key])) if record else None,
    )
    check_profile(profile)
    share_one_arena()
    base_url = api_url(upstream) if upstream else find_endpoint().base_url
    named = read_template(template) if template else None
    run_server(
        Settings(
            base_url,
            host,
            port,
            keep_alive_s=keep_alive,
            patience_s=patience,
            api_key=api_key,
            options=checked(options),
            profile=profile,
            max_streams=max_streams,
            max_waiting=max_waiting,
            stall_s=stall,
            template=named,
            retry_s=retry,
            origins=tuple(each.rstrip("/") for each in allow_origin or ()),
            pass_admin=pass_admin,
        )
    )
