"""Choose an agent's prompt (the model's chat template or a system prompt), its style, and its constraints or guided
tool choice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.backends.chat_client_type_check import find_chat_client
from adapter.backends.template_chat import TemplateChat
from adapter.conversation.message_rendering import Message
from adapter.core.argument_checks import format_value
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import ERROR_LABEL, JsonObject
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.format import Format
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings
from adapter.prompting.system_prompt import Style
from adapter.protocols.template_prompt import PROMPT_MODES
from adapter.tools.operations import Glob, PathList
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace

if TYPE_CHECKING:
    from adapter.agent.answer_reader import AnswerReader
    from adapter.backends.chat_client import ChatClient
    from adapter.conversation.session_steps import AskModel
    from adapter.protocols.translated_request import TranslatedRequest

MAX_CALL_TOKENS = 900
"""Maximum number of tokens in a very small model's call, enough for 400 characters of two tokens each."""
MAX_KNOWN_FILES = 2_000
"""Maximum number of paths in the workspace that are listed for a very small model."""


def choose_prompt_style(constraint: Constraint | None) -> Style:
    """Return the style of the prompt. If calls are enforced, the prompt contains no example, because small models copy
    values from examples."""
    return "bare" if constraint in ("prefer", "required") else "compact"


def check_chat(chat: object, base_url: str | None, model: str | None) -> None:
    """Raise UsageError if ``chat`` cannot stream answers, or is combined with a URL or a model.

    ``chat`` may be None: the agent then finds a server.
    """
    if chat is not None and not hasattr(chat, "stream"):
        raise UsageError(
            f"Agent: chat must be a ChatClient or an object with a stream method, got {format_value(chat)}"
        )
    if chat is not None and (base_url, model) != (None, None):
        raise UsageError("base_url and model cannot be combined with chat; pass either chat, or base_url and model")


def check_max_tools(max_tools: int | None, system: str | None) -> None:
    """Raise UsageError if ``max_tools`` is less than 1, or is combined with a system prompt."""
    if max_tools is not None and max_tools < 1:
        raise UsageError(f"max_tools must be at least 1, got {max_tools}")
    if max_tools is not None and system:
        raise UsageError(
            "max_tools and system cannot be combined, because system already describes the tools; pass one of them"
        )


def validate_prompt_mode(prompt: str) -> None:
    """Raise UsageError unless ``prompt`` is one of `PROMPT_MODES`."""
    if prompt not in PROMPT_MODES:
        raise UsageError(f"unknown prompt {prompt!r}; expected {', '.join(PROMPT_MODES)}")


def format_from_template(chat: object, prompt: str) -> str | None:
    """Return the name of the format derived from the model's chat template. Return None if there is no template, or if
    a known format fits it."""
    client = find_chat_client(chat)
    detected = client.discover_own_prompt().recognized if client is not None and prompt != "words" else None
    return detected.format if detected is not None and detected.by == "template" else None


def make_template_chat(chat: object, tools: ToolSet, format: str | Format, prompt: str) -> TemplateChat | None:
    """Return a chat that renders prompts with the model's chat template, or None if the system prompt must describe the
    tools. ``prompt``: one of `PROMPT_MODES`.

    Raises UsageError for ``own`` if the template cannot be used.
    """
    validate_prompt_mode(prompt)
    client = find_chat_client(chat)
    own_prompt = client.discover_own_prompt() if client is not None and prompt != "words" else None
    if own_prompt is not None and own_prompt.template_prompt is not None:
        return TemplateChat(tools, format, own_prompt.template_prompt)
    if prompt == "own":
        why = own_prompt.reason if own_prompt else "chat must be a ChatClient"
        raise UsageError(f"the model's own chat template cannot be used: {why}; pass prompt='words'")
    return None


def list_known_files(workspace: Workspace) -> Sequence[str]:
    """Return the paths of a workspace's files. Guided tool choice searches requests for them."""
    with suppress(ToolError):
        listed = workspace.read(Glob("**/*", limit=MAX_KNOWN_FILES))
        return listed.paths if isinstance(listed, PathList) else ()
    return ()


def find_guided_choice(client: ChatClient, guide: str, constraint: Constraint | None) -> GuidedChoiceSettings | None:
    """Return the settings of guided tool choice for the client's model, or None if the model can choose tools itself.

    If there is a constraint, the model is guided only if ``constraint`` is "required" and ``guide`` is "on".
    """
    from adapter.backends.small_model_detection import SmallModelCheck

    if constraint is not None:
        return GuidedChoiceSettings(threshold=False) if (guide, constraint) == ("on", "required") else None
    return SmallModelCheck(client.endpoint, guide).find_guided_choice(
        client.model if client.endpoint.kind == "ollama" else ""
    )


def build_constraint_fields(
    chat: object, constraint: Constraint | None, tools: ToolSet, format: str, reply: Tool | None
) -> tuple[JsonObject, JsonObject]:
    """Return two sets of request fields: for an unconstrained answer, and for an answer that must be a call. Raises
    UsageError if there is a constraint and ``chat`` is not a `ChatClient`."""
    if constraint in (None, "off"):
        return {}, {}
    if (client := find_chat_client(chat)) is None:
        raise UsageError(f"constraint={constraint!r} requires a ChatClient, got {type(chat).__name__}")
    from adapter.backends.constraint_fields import build_constraint_fields

    kind = client.endpoint.kind
    constrained = build_constraint_fields(kind, tools, format=format, reply=reply)
    free: JsonObject = {}
    if constraint == "arguments":
        with suppress(UsageError):  # the grammar is too large or empty, so do not constrain
            free = build_constraint_fields(kind, tools, format=format, waits=True)
    return free, constrained


def build_guided_request(
    query: AskModel,
    client: ChatClient,
    guided: GuidedChoiceSettings,
    format: str,
    workspace: Workspace,
    *,
    is_first: bool,
) -> TranslatedRequest:
    """Build the request for a model too small to choose tools, as `adapter serve` does. ``is_first`` is true for the
    first request after a user message."""
    from adapter.backends.constraint_fields import build_constraint_fields
    from adapter.protocols.chat_request_translation import translate_chat_request
    from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions

    tools = [tool.to_openai() for tool in workspace.tools.values()]
    messages = [dict(message) for message in query.messages if message["role"] != "system"]
    enforce = partial(build_constraint_fields, client.endpoint.kind)
    choice = "auto" if is_first else "none"
    settings = replace(guided, known_paths=list_known_files(workspace) if is_first else ())
    return translate_chat_request(
        {"messages": messages, "tools": tools, "tool_choice": choice, "max_tokens": MAX_CALL_TOKENS},
        TranslationOptions(
            prompt=PromptSettings(format=format),
            constraints=ConstraintSettings(enforce=enforce),
            guided_choice=settings,
        ),
    )


def add_further_calls(answer: AnswerReader, message: str, tools: ToolSet, format: Format) -> None:
    """Add the further calls to the same tool that ``message`` asks for. A very small model leaves them out."""
    calls = answer.calls
    if len(calls) != 1 or calls[0].name not in tools:
        return
    from adapter.backends.stream_chunks import Chunk
    from adapter.prompting.intent.further_calls import find_further_arguments
    from adapter.prompting.intent.text_values import unquote

    if further := find_further_arguments(unquote(message), tools[calls[0].name], calls[0].arguments):
        written = format.encode_calls([(calls[0].name, arguments) for arguments in further])
        answer.feed(Chunk(f"\n{written}"))


def is_very_small(client: ChatClient | None) -> bool:
    """Return whether the server reports such a small model that it may invent values."""
    if client is None:
        return False
    from adapter.backends.small_model_detection import invents_values

    return invents_values(client.endpoint, client.model)


def select_basic_tools(workspace: Workspace) -> ToolSet:
    """Return the dialect's basic tools and the custom tools, for a very small model's chat template. With more, such a
    model alternates between similar tools, and needs half a minute to read 2,000 tokens of definitions."""
    tools, basic, own = workspace.tools, workspace.dialect.basic, workspace.dialect.tools
    return ToolSet(tool for name, tool in tools.items() if name in basic or name not in own) if basic else tools


def build_plain_question(messages: Sequence[Message], request: str) -> list[Message]:
    """Return one message with the results so far and the user's ``request``, or [] if the request was trimmed.

    A very small model that sees tools but is constrained to words does not answer, so the message mentions no tools.
    """
    asked = [
        at for at, message in enumerate(messages) if message["role"] == "user" and request in str(message["content"])
    ]
    if not asked:
        return []
    results = (str(message["content"]) for message in messages[asked[-1] + 1 :] if message["role"] == "tool")
    texts = [*(result for result in results if not result.startswith(ERROR_LABEL)), request]
    return [{"role": "user", "content": "\n\n".join(texts)}]
