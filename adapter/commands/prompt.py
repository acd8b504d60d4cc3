"""`adapter prompt`: the system prompt that teaches a model its tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from adapter.commands.options import ExcludeTools, IncludeTools, dialect_named
from adapter.commands.output import print_visible


def prompt(
    dialect: Annotated[str, typer.Option(help="The tool set to describe.")] = "blade",
    format: Annotated[str, typer.Option(help="How the model is to write calls.")] = "hermes",
    style: Annotated[str, typer.Option(help="compact, full or trained.")] = "compact",
    prompts: Annotated[Path | None, typer.Option(help="A folder with templates of your own.")] = None,
    tools: Annotated[str | None, typer.Option(help="With promptly: the base name of the tools files.")] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Say how many tokens it takes, on standard error.")] = False,
    model: Annotated[Path | None, typer.Option(help="With --tokens: a GGUF file whose tokenizer counts.")] = None,
) -> None:
    """Print a system prompt that teaches a model to call tools."""
    from adapter.prompt import system_prompt

    described = dialect_named(dialect, tools, include_tools, exclude_tools)
    text = system_prompt(described, format, style, prompts=str(prompts) if prompts else None)
    print_visible(text, end="")
    if tokens:
        print(_token_count(text, model), file=sys.stderr)


def _token_count(text: str, model: Path | None) -> str:
    from adapter.conversation.tokens import approximate_tokens

    if model is None:
        return f"about {approximate_tokens(text)} tokens, estimated; --model FILE.gguf counts with its tokenizer"
    from adapter.upstream.embedded import EmbeddedServer
    from adapter.upstream.endpoints import count_tokens

    with EmbeddedServer(model) as server:
        return f"{count_tokens(text, server.endpoint)} tokens, by the tokenizer of {model.name}"
