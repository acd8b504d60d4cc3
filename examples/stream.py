"""Parse an answer while it streams: text arrives immediately, and each call as soon as it is complete.

text 'Two files.'
call read_file {'path': 'a.py'}
call read_file {'path': 'b.py'}
cut off: not run
"""

from collections.abc import Iterable

from adapter import InvalidToolCall, Parser, TextDelta, ToolCall

PIECES = [
    "Two files.<tool_",
    'call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>\n<tool_call>\n{"name": "re',
    'ad_file", "arguments": {"path": "b.py"}}\n</tool_call>\n<tool_call>\n{"name": "write_fi',
]


def show(events: Iterable[object]) -> None:
    for event in events:
        match event:
            case TextDelta(text=text) if text.strip():
                print(f"text {text!r}")
            case ToolCall(name=name, arguments=arguments):
                print(f"call {name} {arguments}")
            case InvalidToolCall():
                print("cut off: not run")


parser = Parser()  # detects the format; Parser(format="qwen3_coder") sets it
for piece in PIECES:
    show(parser.feed(piece))
show(parser.close(finish_reason="length"))
