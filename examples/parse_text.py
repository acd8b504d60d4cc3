"""Read one whole answer: what is said, what is called, what was mended, and what only looks like a call.

I'll look.
read_file {'path': 'settings.ini'} mended: trailing-comma
no call: inline-code
"""

from adapter import parse

ANSWER = """I'll look.
<tool_call>
{"name": "read_file", "arguments": {"path": "settings.ini",}}
</tool_call>
Such tags as `<tool_call>{"name": "delete_file", "arguments": {}}</tool_call>` are mine to write."""

turn = parse(ANSWER)
print(turn.content.splitlines()[0])
for call in turn.calls:
    print(call.name, call.arguments, "mended:", *call.fixes)
for rejected in turn.rejected:
    print("no call:", rejected.reason)
