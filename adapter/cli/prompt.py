"""`adapter prompt`: the system prompt that teaches a model its tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.shared_options import ExcludeTools, IncludeTools, resolve_dialect
from adapter.cli.terminal_output import print_escaped, print_prompt
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.dialects import Dialect


def prompt(
    dialect: Annotated[str, typer.Option(help="The tool set to describe.")] = "blade",
    format: Annotated[str, typer.Option(help="How the model is to write calls.")] = "hermes",
    style: Annotated[str, typer.Option(help="compact, args, full or trained.")] = "compact",
    prompts: Annotated[Path | None, typer.Option(help="A folder with templates of your own.")] = None,
    tools: Annotated[str | None, typer.Option(help="With promptly: the base name of the tools files.")] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    template: Annotated[
        Path | None,
        typer.Option(help="A chat template (Jinja, tokenizer_config.json, GGUF): print what it makes of these tools."),
    ] = None,
    ask: Annotated[str, typer.Option(help="With --template: what the user says.")] = "Hello!",
    base_url: Annotated[str | None, typer.Option(help="With --tokens: the llama.cpp whose tokenizer counts.")] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Say how many tokens it takes, on standard error.")] = False,
    model: Annotated[Path | None, typer.Option(help="With --tokens: a GGUF file whose tokenizer counts.")] = None,
) -> None:
    """Print a system prompt that teaches a model to call tools."""
    from adapter.prompting.system_prompt import system_prompt

    described = resolve_dialect(dialect, tools, include_tools, exclude_tools)
    if template is not None:
        text = _filled(template, described, ask)
    else:
        text = system_prompt(described, format, style, prompts=str(prompts) if prompts else None)
        print_escaped(text, end="")
    if tokens:
        print(_token_count(text, model, base_url), file=sys.stderr)


def _filled(path: Path, dialect: Dialect, ask: str) -> str:
    """Print the prompt that a template makes of a dialect's tools; give it."""
    from adapter.backends.prompt_discovery import render_system_prompt
    from adapter.backends.template_files import TemplateWorker, load_chat_template
    from adapter.prompting.chat_template import ChatTemplateError
    from adapter.prompting.system_prompt import default_tools, system_prompt

    tools = default_tools(dialect)
    system = system_prompt(dialect, style="native", tools=tools)
    with TemplateWorker(load_chat_template(path)) as process:
        try:
            prompt, without = render_system_prompt(process, system, ask, tools)
        except ChatTemplateError as fault:
            raise UsageError(f"{path}: {fault}") from fault
    print_prompt(prompt, without)
    return prompt


def _token_count(text: str, model: Path | None, base_url: str | None) -> str:
    from adapter.backends.endpoint_discovery import count_tokens, find_endpoint
    from adapter.conversation.token_estimate import estimate_tokens

    if base_url is not None:
        endpoint = find_endpoint(base_url)
        if endpoint.kind != "llama.cpp":
            raise UsageError(f"{endpoint.display_url} is {endpoint.kind}; --base-url counts with llama.cpp's tokenizer")
        return f"{count_tokens(text, endpoint)} tokens, by the tokenizer at {endpoint.display_url}"
    if model is None:
        return f"about {estimate_tokens(text)} tokens, estimated; --model FILE.gguf counts with its tokenizer"
    from adapter.backends.embedded_server import EmbeddedServer

    with EmbeddedServer(model) as server:
        return f"{count_tokens(text, server.endpoint)} tokens, by the tokenizer of {model.name}"
