"""The codes of repairs in `ToolCall.fixes`, and their descriptions.

A code that is not in this table is a bug (tests/parsing/test_parser.py).
"""

from __future__ import annotations

REPAIRS: dict[str, str] = {
    # the envelope around the call
    "missing-open-tag": "the marker that opens a call was missing",
    "misspelt-open-tag": "the marker that opens a call was wrong or misspelt",
    "missing-close-tag": "the marker that closes a call was missing after a complete body",
    "misspelt-close-tag": "the closing marker was misspelt",
    "missing-inner-tag": "a tag inside the call was missing, such as the one that closes a value",
    "code-fence": "the call was in a code fence",
    "no-markers": "the call was written without its format's markers",
    "several-in-one-tag": "one pair of markers held several calls",
    "misspelt-inner-tag": "a tag inside the call was wrong",
    "text-in-tag": "extra text between the call's markers was dropped",
    "foreign-body": "the body was written in another format",
    "value-in-attribute": "a value was in an attribute of its tag",
    "attribute-syntax": 'a tag had `name="..."` where the format has `=...`',
    # JSON syntax
    "trailing-comma": "a comma before a closing bracket was dropped",
    "missing-comma": "a comma between members was added",
    "missing-bracket": "closing brackets were added at the end",
    "extra-bracket": "unmatched closing brackets were dropped",
    "single-quotes": "strings in single quotes were accepted",
    "curly-quotes": "typographic quotes were accepted as string delimiters",
    "backtick-string": "a string in backticks was accepted",
    "triple-quotes": "a triple-quoted string was accepted",
    "unquoted-string": "a string without its delimiters was accepted",
    "unquoted-key": "a key without quotes was accepted",
    "json-literal": "true, false or null were accepted in a Python call",
    "python-literal": "True, False or None were accepted as JSON",
    "comment": "comments were dropped",
    "raw-control-character": "raw line breaks, tabs or control characters in a string were accepted",
    "escaped-newline": "escaped line breaks between tokens were dropped",
    "unescaped-quote": "unescaped quotes inside a string were kept",
    "escaped-quotes": "escaped quotes were read as string delimiters",
    "invalid-escape": "an invalid escape was kept verbatim",
    "key-without-value": "a key without a value was dropped",
    "number-spelling": "a number in a non-JSON notation was accepted",
    "lone-surrogate": "half of a surrogate pair was replaced",
    # shape
    "name-key": "the name was under a key other than `name`",
    "arguments-key": "the arguments were under a key other than the format's own",
    "nested-function": "the call was wrapped in a `function` object",
    "tool-calls-list": "the call was wrapped in a `tool_calls` list",
    "name-in-arguments": "the name was among the arguments",
    "name-as-key": "the tool's name was the only key",
    "flat-arguments": "the arguments were next to the name",
    "positional-arguments": "arguments without names were named in the order of the tool's definition",
    "string-arguments": "the arguments were JSON inside a string",
    "list-arguments": "the arguments were a list with one object",
    "repeated-argument": "an argument was given several times: a list got all values, any other type the last",
    "cdata": "a value was in a CDATA section",
    "no-arguments": "missing or null arguments were treated as an empty object",
    # against the tool's definition
    "tool-name": "the tool's name was spelt differently",
    "argument-alias": "an argument had another name",
    "coerced-type": "a value was converted to the type the tool declares",
    "choice-spelling": "a choice was written in another letter case",
    "json-in-string": "a list or object was JSON inside a string",
    "json-as-text": "an object where the tool declares text was written as JSON",
    "echoed-schema": "a value was inside a copy of its schema",
    "windows-path": "escape sequences in a Windows path were read as plain backslashes",
}
