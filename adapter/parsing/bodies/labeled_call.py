"""Parse a call after a label in brackets, which some clients write into the model's history.

::

    [Calling tool: NAME({...})]                    [Calling tool: NAME with arguments: {...}]
    [Tool Call] name=NAME id=ID args={...}         !<function_call:{"name": "NAME", "arguments": {...}}>
    [Calling tool: NAME]
    <parameter name="KEY">value</parameter>

Between the label and the arguments are only the tool's name, an id, and words such as ``with arguments``.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.invoke_tags import read_invoke
from adapter.parsing.bodies.python_scanner import read_one_call
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.tools.tool import ToolSet

LABELS = (
    *("[Calling tool:", "[Tool call:", "[tool_call:", "[Tool use:", "[tool_use:"),
    *("[Tool Call]", "!<function_call:"),
)

_beginnings, _closers = get_marker_set("{", "(", "<"), get_marker_set("]", ">")
_ID = re.compile(r"\b(?:call_)?id\s*[=:]\s*[\w-]+", re.IGNORECASE)
_OTHER_WORD = re.compile(
    r"\b(?:name|tool|function|with|the|arguments|args|input|parameters)\b(?!-)(?:\s*[=:])?", re.IGNORECASE
)
_NAME = re.compile(r"[\s\"'`*]*([\w./:-]*[\w])[\s\"'`*,:\]]*")


def read_labeled_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the call after one of `LABELS` at the start of a line."""
    if not source.at_line_start or not (yield from source.peek_marker(_beginnings, NAME_LIMIT)):
        return TEXT
    ahead: list[str] = []
    beginning = yield from source.read_until(_beginnings, ahead)
    head = "".join(ahead)
    name = _find_name(head, source.tools)
    source.push_back(beginning)
    if name is None or (beginning == "(" and not head.endswith(name)) or (beginning != "{" and not name):
        source.push_back(head)
        return TEXT
    consumed.append(head if beginning != "(" else head[: len(head) - len(name)])
    if beginning == "(":
        source.push_back(name)
        result = (yield from read_one_call(source, consumed)).remove_fixes("positional-arguments")  # one object
    elif beginning == "<":
        return (yield from read_invoke(name, source, consumed)).with_fixes("misspelt-open-tag")
    else:
        result = yield from UntaggedJson("arguments", after_marker=True, name=name or None)(source, consumed)
    if not name and not result.calls_known_tools(source.tools):
        return TEXT
    yield from source.skip_space(consumed)
    closing = yield from source.consume_marker(_closers, consumed)
    if beginning == "(" and (not result.calls or (not closing and source.was_cut)):
        return result if result.error else CUT
    is_open = beginning == "(" and not closing
    return result.with_fixes("misspelt-open-tag", *(("missing-close-tag",) if is_open else ()))


def _find_name(head: str, tools: ToolSet) -> str | None:
    """Return the only name in ``head``, an empty string if there are no words in it, or None if there are others."""
    rest = _ID.sub(" ", head)
    names = [match[1] for match in map(_NAME.fullmatch, (rest, _OTHER_WORD.sub(" ", rest))) if match]
    known = [name for name in names if not tools or tools.match(name)]
    return known[0] if known else None if names or rest.strip() else ""


OPENERS = tuple(CallOpener(label, read_labeled_call) for label in LABELS)
