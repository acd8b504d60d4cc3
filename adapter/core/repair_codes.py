"""The names of all repairs, and what each one did.

A `ToolCall` lists in ``fixes`` what had to be mended to read it. A name that is
not in this table is a bug (tests/parsing/test_parser.py).
"""

from __future__ import annotations

REPAIRS: dict[str, str] = {
    # the envelope around the call
    "missing-open-tag": "the marker that opens a call was missing",
    "misspelt-open-tag": "the marker that opens a call was another one, or misspelt",
    "missing-close-tag": "the marker that closes a call was missing after a complete body",
    "misspelt-close-tag": "the closing marker was misspelt",
    "missing-inner-tag": "a tag inside the call was missing, as the one that closes a value",
    "code-fence": "the call stood in a code fence",
    "no-markers": "the call was bare JSON, without its format's markers",
    "several-in-one-tag": "one pair of markers held several calls",
    "misspelt-inner-tag": "a tag inside the call was another one",
    "text-in-tag": "text beside the call, within its markers, was left out",
    "foreign-body": "the body was written as in another format than the one told",
    "value-in-attribute": "a value stood in an attribute of its tag",
    "attribute-syntax": 'a tag had `name="..."` where the format has `=...`',
    # JSON syntax
    "trailing-comma": "a comma before a closing bracket was dropped",
    "missing-comma": "a comma between members was added",
    "missing-bracket": "closing brackets were added at the end",
    "extra-bracket": "closing brackets that close nothing were dropped",
    "single-quotes": "strings in single quotes were read",
    "curly-quotes": "typographic quotes were read as string delimiters",
    "backtick-string": "a string in backticks was read",
    "triple-quotes": "a triple-quoted string was read",
    "unquoted-string": "a string without its delimiters was read",
    "unquoted-key": "a key without quotes was read",
    "json-literal": "true, false or null were read in a Python call",
    "python-literal": "True, False or None were read as JSON",
    "comment": "comments were dropped",
    "raw-control-character": "raw line breaks, tabs or control characters in a string were read",
    "escaped-newline": "escaped line breaks between tokens were dropped",
    "unescaped-quote": "unescaped quotes inside a string were kept",
    "invalid-escape": "an invalid escape was kept as it was written",
    "key-without-value": "a key without a value was dropped",
    "number-spelling": "a number that is not spelt as JSON demands was read",
    "lone-surrogate": "half of a surrogate pair was replaced",
    # shape
    "name-key": "the name stood under another key than `name`",
    "arguments-key": "the arguments stood under another key than the format's own",
    "nested-function": "the call was wrapped in a `function` object",
    "tool-calls-list": "the call was wrapped in a `tool_calls` list",
    "name-in-arguments": "the name stood among the arguments",
    "name-as-key": "the tool's name was the only key",
    "flat-arguments": "the arguments stood beside the name",
    "positional-arguments": "arguments without names were named in the order of the tool's definition",
    "string-arguments": "the arguments were JSON inside a string",
    "list-arguments": "the arguments were a list with one object",
    "repeated-argument": "an argument was given several times: a list took them all, anything else the last",
    "cdata": "a value stood in a CDATA section",
    "no-arguments": "missing or null arguments were read as none",
    # against the tool's definition
    "tool-name": "the name was matched to the tool it spells differently",
    "argument-alias": "an argument came under another name",
    "coerced-type": "a value was converted to the type the tool declares",
    "choice-spelling": "a choice was spelt in another letter case",
    "json-in-string": "a list or object came as JSON inside a string",
    "echoed-schema": "a value stood within a copy of its schema",
    "windows-path": "escapes in a Windows path were read as its backslashes",
}
