"""Strategies for texts that are hard to parse: marker soup, damaged calls, calls and their definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format_spec import FormatSpec, KeyValueLayout
from adapter.parsing.formats import FORMATS, register_format

TOOLS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "cases" / "tools.json").read_text(encoding="utf-8")
)
FORMAT_NAMES: list[str | None] = [*FORMATS, None]

_SPECS = [
    FormatSpec(
        name="bracketed_lines",
        body="lines",
        head="<<call ",
        between="\n",
        pairs=KeyValueLayout(">>\n", "]]\n", "]]\n<</call>>", ">>\n<</call>>", {"string": ": [["}),
    ),
    FormatSpec(
        name="plain_lines",
        body="lines",
        head="[[use ",
        between="\n",
        pairs=KeyValueLayout("]]\n", "\n", "\n[[end]]", "]]\n[[end]]", {"string": ": "}),
    ),
    FormatSpec(
        name="named_elements",
        body="lines",
        head="<act><do>",
        between="\n",
        pairs=KeyValueLayout("</do><", "</{key}><", "</{key}></act>", "</do></act>", {"string": ">"}),
    ),
    FormatSpec(
        name="tagged_lines",
        body="lines",
        head="<ask>",
        between="\n",
        pairs=KeyValueLayout("\n", "\n", "\n</ask>", "\n</ask>", {"string": ": "}),
    ),
    FormatSpec(
        name="tool_call_elements",
        body="lines",
        head="<tool_call>",
        between="\n",
        pairs=KeyValueLayout("\n<", "</{key}>\n<", "</{key}>\n</tool_call>", "\n</tool_call>", {"string": ">"}),
    ),
    FormatSpec(
        name="yaml_arguments",
        body="yaml",
        head="%%tool\nname: ",
        middle="\nwith:\n",
        tail="\n%%end",
        between="\n",
        indent=2,
    ),
]
for _spec in _SPECS:
    register_format(compile_format(_spec))
FILE_FORMATS = tuple(spec.name for spec in _SPECS)
"""Formats with the bodies that only format files and derived formats have. They are not detected."""

# The tool that generated calls are of: one parameter of every type.
EVERYTHING: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "do_everything",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean"},
                "items": {"type": "array"},
                "options": {"type": "object"},
            },
        },
    },
}

MARKERS = [
    *{opener.marker for entry in FORMATS.values() for opener in entry.openers},
    *{marker for entry in FORMATS.values() for marker in (*entry.stray_closers, *entry.end_tokens)},
    *{marker for entry in FORMATS.values() for marker in (*entry.result_markers, *entry.other_role_markers)},
    *{marker for entry in FORMATS.values() for pair in entry.reasoning.items() for marker in pair},
    "<function=bash>", '<function name="bash">', "<parameter=command>", '<parameter name="path">', "</tools>",
    "<think>", "</think>", "<thinking>", "</thinking>", "<|im_end|>", "<|im_start|>", "<|eot_id|>",
    "<tool_response>", "</tool_response>", "</toolcall>", "</tool_cal", '<tool_call id="1">',
]  # fmt: skip
PUNCTUATION = [*"\"'`{}[]:,;\\<>/#=", "```", "```json\n", "\n```\n", "'''", '"""', "“", "”", "//", "/*", "*/", "\\n"]
PIECES = [
    *MARKERS, *PUNCTUATION,
    '{"name": "bash", "arguments": {"command": "ls"}}', '{"name": "get_time"}', '"name"', '"arguments"', "bash",
    '<tool_call>\n{"name": "bash", "arguments": {"command": "l', "read_file", "\n", "\n\n", " ", "\r\n", "\n{", "\n[",
    "x", "é", "😀", "\ud800", "\x00", "\ufeff", "…", "...", "True", "None", "123", "-1.5e3", "\\u12", "\\ud83d",
]  # fmt: skip

soup = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
"""Markers, quotes, brackets and names in any order."""

any_text = st.text(alphabet=st.characters(), max_size=60)
"""Any characters, including lone surrogates."""

characters = st.characters(exclude_categories=["Cs"])
"""All characters that can be encoded as UTF-8."""

strings = st.one_of(
    st.text(characters, max_size=20),
    st.lists(st.sampled_from([piece for piece in PIECES if piece != "\ud800"]), max_size=6).map("".join),
)
"""Text that can be written as JSON: any, and marker soup."""

_numbers = st.one_of(
    st.integers(-(10**30), 10**30),
    st.sampled_from([0, -1, 2**63, 2**64, 10**399]),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), _numbers, strings),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(strings, inner, max_size=3)),
    max_leaves=6,
)
"""JSON values of every kind."""

arguments = st.fixed_dictionaries(
    {},
    optional={
        "text": strings,
        "count": st.integers(-(10**30), 10**30),
        "ratio": _numbers,
        "flag": st.booleans(),
        "items": st.lists(values, max_size=3),
        "options": st.dictionaries(strings, values, max_size=3),
    },
)
"""Arguments of the tool EVERYTHING."""


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Draw a real call of some format with a few pieces deleted, doubled, swapped or cut away."""
    entry = FORMATS[draw(st.sampled_from(sorted(FORMATS)))]
    text = entry.encode_calls([("do_everything", draw(arguments)) for _ in range(draw(st.integers(1, 2)))])
    text = draw(st.sampled_from(["", "Now:\n", "<think>\nHm.\n</think>\n\n", "<think>\nHm.\n"])) + text
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = text[start:end]
        match draw(st.sampled_from(["delete", "double", "swap", "cut", "insert"])):
            case "delete":
                text = text[:start] + text[end:]
            case "double":
                text = text[:end] + piece + text[end:]
            case "swap":
                text = text[:start] + text[end : end + 12] + piece + text[end + 12 :]
            case "cut":
                text = text[:end]
            case "insert":
                text = text[:start] + draw(st.sampled_from(PIECES)) + text[start:]
    return text
