"""`adapter prompt`: prints the system prompt that teaches a model its tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from adapter.cli import options
from adapter.cli.escaped_output import print_escaped, print_prompt
from adapter.cli.options import flag, option, resolve_dialect
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.dialects import Dialect
    from adapter.tools.tool_set import ToolSet


def prompt(
    dialect: Annotated[
        str, option("NAME", "Describe this tool set: blade, maki, promptly, proto, proxyai or none.")
    ] = "blade",
    format: Annotated[str, option("NAME", "Describe calls in this tool-call format.")] = "hermes",
    style: Annotated[
        str,
        option(
            "NAME",
            "Describe the tools in this style: compact (one line), args (with types), full (explained) or trained "
            "(JSON).",
        ),
    ] = "compact",
    prompts: Annotated[Path | None, option("DIR", options.PROMPTS_HELP)] = None,
    tools: Annotated[
        str | None,
        option(
            "FILE",
            "Describe the tools in this JSON file. With `--dialect promptly`, FILE is the name, without .json, of the "
            "files to read instead of tools.json.",
        ),
    ] = None,
    include_tools: options.IncludeTools = None,
    exclude_tools: options.ExcludeTools = None,
    template: Annotated[
        Path | None,
        option("FILE", "Render the prompt with this chat template instead: Jinja, tokenizer_config.json or GGUF."),
    ] = None,
    ask: Annotated[str, option("TEXT", "Render this user message with the chat template of `--template`.")] = "Hello!",
    base_url: Annotated[
        str | None, option("URL", "With `--tokens`: use the tokenizer of this llama.cpp server.")
    ] = None,
    tokens: Annotated[bool, flag("Print the number of tokens in the prompt on standard error.", "--tokens")] = False,
    model: Annotated[Path | None, option("FILE", "With `--tokens`: use the tokenizer in this GGUF file.")] = None,
) -> None:
    """Print a system prompt that teaches a model its tools."""
    from adapter.cli.tool_definitions import read_tool_definitions
    from adapter.prompting.system_prompt import load_default_tools, system_prompt
    from adapter.tools.tool_set import ToolSet

    own = ToolSet(read_tool_definitions(tools)) if tools is not None and dialect != "promptly" else None
    described = resolve_dialect(dialect, tools if own is None else None, include_tools, exclude_tools)
    offered = load_default_tools(described) if own is None else own
    if template is not None:
        text = _print_template_prompt(template, described, offered, ask)
    else:
        text = system_prompt(described, format, style, tools=offered, prompts=str(prompts) if prompts else None)
        print_escaped(text, end="")
    if tokens:
        print(_describe_token_count(text, model, base_url), file=sys.stderr)


def _print_template_prompt(path: Path, dialect: Dialect, tools: ToolSet, ask: str) -> str:
    """Render ``tools`` with a chat template. Print and return the prompt."""
    from adapter.backends.prompt_discovery import render_system_prompt
    from adapter.backends.template_files import TemplateWorker, load_chat_template
    from adapter.prompting.chat_template import ChatTemplateError
    from adapter.prompting.system_prompt import system_prompt

    system = system_prompt(dialect, style="native", tools=tools)
    with TemplateWorker(load_chat_template(path)) as worker:
        try:
            prompt, without = render_system_prompt(worker, system, ask, tools)
        except ChatTemplateError as error:
            raise UsageError(f"the chat template {path} cannot be rendered: {error}") from error
    print_prompt(prompt, without)
    return prompt


def _describe_token_count(text: str, model: Path | None, base_url: str | None) -> str:
    from adapter.backends.endpoint_discovery import count_tokens, find_endpoint
    from adapter.conversation.token_estimate import estimate_tokens

    if base_url is not None:
        endpoint = find_endpoint(base_url)
        if endpoint.kind != "llama.cpp":
            raise UsageError(f"--base-url needs a llama.cpp server; {endpoint.display_url} is {endpoint.kind}")
        return f"{count_tokens(text, endpoint)} tokens, counted by {endpoint.display_url}"
    if model is None:
        return f"about {estimate_tokens(text)} tokens, estimated; --model FILE.gguf counts them exactly"
    from adapter.backends.in_process_llama_cpp import EmbeddedServer

    with EmbeddedServer(model) as server:
        return f"{count_tokens(text, server.endpoint)} tokens, counted by the tokenizer of {model.name}"
