"""Parse a complete answer: its content, its calls with their repairs, and text that only looks like a call.

I'll look.
read_file {'path': 'settings.ini'} repairs: trailing-comma
rejected: inline-code
"""

from adapter import parse

ANSWER = """I'll look.
<tool_call>
{"name": "read_file", "arguments": {"path": "settings.ini",}}
</tool_call>
Such tags as `<tool_call>{"name": "delete_file", "arguments": {}}</tool_call>` are plain text here."""

turn = parse(ANSWER)
print(turn.content.splitlines()[0])
for call in turn.calls:
    print(call.name, call.arguments, "repairs:", *call.fixes)
for rejected in turn.rejected:
    print("rejected:", rejected.reason)
