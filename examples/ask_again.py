"""Check answers with guardrails in your own loop: an answer that announces a call but makes none is retried.

announced_call: retry
read_file {'path': 'a.txt'}
"""

from typing import Any

from adapter import Accept, Guardrails, Retry, Stop, parse

TOOLS = [{"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]
ANSWERS = iter([
    "Sure, let me read the file for you:",
    '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>',
])  # fmt: skip

messages = [{"role": "user", "content": "What is in a.txt?"}]
guardrails, extra = Guardrails(TOOLS), list[Any]()
while True:
    text = next(ANSWERS)  # the model's answer to [*messages, *extra]
    turn = parse(text, TOOLS)
    match guardrails.check(messages, turn):
        case Accept():
            break
        case Retry(guardrail=name, message=message):
            print(f"{name}: retry")
            extra = [{"role": "assistant", "content": text}, {"role": "user", "content": message}]
        case Stop(reason=reason):
            raise SystemExit(reason)
for call in turn.calls:
    print(call.name, call.arguments)
