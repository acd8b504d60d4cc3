"""Read an answer while it is written: words at once, each call whole, the moment it is closed.

says 'Two files.'
calls read_file {'path': 'a.py'}
calls read_file {'path': 'b.py'}
cut off: nothing is run
"""

from adapter import InvalidToolCall, Parser, TextDelta, ToolCall

PIECES = [
    "Two files.<tool_",
    'call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>\n<tool_call>\n{"name": "re',
    'ad_file", "arguments": {"path": "b.py"}}\n</tool_call>\n<tool_call>\n{"name": "write_fi',
]

parser = Parser()  # of any format; Parser(format="qwen3_coder") reads one
for piece in [*PIECES, None]:
    for event in parser.feed(piece) if piece is not None else parser.close(finish_reason="length"):
        match event:
            case TextDelta(text=text) if text.strip():
                print(f"says {text!r}")
            case ToolCall(name=name, arguments=arguments):
                print(f"calls {name} {arguments}")
            case InvalidToolCall():
                print("cut off: nothing is run")
