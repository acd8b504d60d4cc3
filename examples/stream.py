"""Parse an answer while it streams: text arrives immediately, and each call as soon as it is complete.

text 'Two files.'
call read_file {'path': 'a.py'}
call read_file {'path': 'b.py'}
cut off: not run
"""

from adapter import InvalidToolCall, Parser, TextDelta, ToolCall

PIECES = [
    "Two files.<tool_",
    'call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>\n<tool_call>\n{"name": "re',
    'ad_file", "arguments": {"path": "b.py"}}\n</tool_call>\n<tool_call>\n{"name": "write_fi',
]

parser = Parser()  # any format; Parser(format="qwen3_coder") fixes one
for piece in [*PIECES, None]:
    for event in parser.feed(piece) if piece is not None else parser.close(finish_reason="length"):
        match event:
            case TextDelta(text=text) if text.strip():
                print(f"text {text!r}")
            case ToolCall(name=name, arguments=arguments):
                print(f"call {name} {arguments}")
            case InvalidToolCall():
                print("cut off: not run")
