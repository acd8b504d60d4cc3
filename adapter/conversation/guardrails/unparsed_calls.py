"""Find calls in answers that were not parsed as calls: in the wrong markup, incomplete, or of an unknown tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.core.events import JsonObject
from adapter.core.json.strict import decode_strict
from adapter.prompting.escaping import unescape_control_tokens
from adapter.tools.decoded_json_calls import looks_like_call
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

_OPEN_CALL = re.compile(
    r"""<\|?(?:function|function_calls?|invoke|tool_calls?)\b[^<>]{0,80}>|\[TOOL_CALLS?\]|<\|python_tag\|>""",
    re.IGNORECASE,
)
_BEFORE_JSON = re.compile(r"\s*(?:```\w*\s*|<\|?\w{1,30}\|?>\s*)?(?=[\[{])")
_CALL_HEAD = re.compile(
    r"""\s*(?:```\w*\s*)?\{\s*"name"\s*:\s*"(?P<name>[^"\n]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?P<list>\[)?"""
)
MAX_HEAD = 400
"""Number of characters at the start of an answer that are searched for the beginning of a call."""
_ABOUT_CALLS = re.compile(
    r"(?i)\b(?:tool|function)[- _]?call|(?<![.\w])json\b|\bexample|\bsyntax\b|\bformat\b|\bschema\b"
)
BEGINNING = 400
"""Number of characters at the start of a malformed call that are searched for its tool's name."""
MAX_NAME_OFFSET = 200
"""Number of characters after an opening marker that are searched for the call's name."""


def has_unparsed_call(answer: CandidateAnswer, history: CallHistory, tools: ToolSet) -> bool:
    """Return whether the answer contains a call to one of ``tools`` that was not parsed, for example in wrong markup.

    Markers that occur in the request or in a tool result do not count, because the model may quote them. Return False
    if the request is about calls.
    """
    if is_about_calls(history.request):
        return False
    prose = _remove_code(answer.content)
    opened = (
        prose[match.end() : match.end() + MAX_NAME_OFFSET]
        for match in _OPEN_CALL.finditer(prose)
        if match[0] not in history.given_text
    )
    return _names_tool(answer.rejected, tools) or _names_tool(opened, tools)


def _names_tool(pieces: Iterable[str], tools: ToolSet) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", piece) for piece in pieces for name in tools)


def _remove_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)|`[^`\n]*`", " ", text, flags=re.DOTALL)


def find_leading_call(text: str) -> str:
    """Return the JSON of the complete call at the start of ``text``, or "". A marker may precede the call."""
    start = _BEFORE_JSON.match(text)
    decoded = decode_strict(text, start.end()) if start is not None else None
    if start is None or decoded is None:
        return ""
    value = decoded.value[0] if isinstance(decoded.value, list) and decoded.value else decoded.value
    return text[start.end() : decoded.end] if looks_like_call(value) else ""


def find_arguments(text: str) -> JsonObject:
    """Return the arguments of the JSON call at the start of ``text``, or an empty object if there is none."""
    found = (read_leading_call(text).get(key) for key in ("arguments", "parameters"))
    return next((arguments for arguments in found if isinstance(arguments, dict)), {})


def read_leading_call(text: str) -> JsonObject:
    """Return the JSON call at the start of ``text``, or an empty object if there is none."""
    whole = find_leading_call(text)
    value = json.loads(whole) if whole else None
    call = value[0] if isinstance(value, list) and value else value
    return call if isinstance(call, dict) else {}


def is_about_calls(request: str) -> bool:
    """Return whether ``request`` is about JSON or calls. If so, a call in the answer may be just an example."""
    return _ABOUT_CALLS.search(request) is not None


def is_call_shaped(content: str, request: str) -> bool:
    """Return whether the answer begins with a call in JSON, possibly with escaped control tokens. Return False if
    ``request`` is about JSON or calls."""
    return find_leading_call(unescape_control_tokens(content)) != "" and not is_about_calls(request)


def begins_hopeless_call(content: str, request: str, tools: ToolSet) -> bool:
    """Return whether the answer begins like a call that can never be valid: JSON with the name of an unknown tool, or
    with a list as arguments.

    The call need not be complete. Return False if ``request`` is about JSON or calls.
    """
    head = _CALL_HEAD.match(unescape_control_tokens(content[:MAX_HEAD]))
    is_call = head is not None and (head["list"] is not None or tools.match(head["name"]) is None)
    return is_call and not is_about_calls(request)


def find_named_tool(raw: str, tools: ToolSet) -> Tool | None:
    """Return the tool whose name occurs first in a malformed call, or None."""
    found = [
        (match.start(), -len(name), name)
        for name in tools
        if (match := re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", raw[:BEGINNING]))
    ]
    return tools[min(found)[2]] if found else None
