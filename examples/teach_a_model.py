"""Build a system prompt that teaches a model your tools in its own format, and parse the answer.

In the prompt: <function=get_weather>
Parsed: get_weather {'city': 'Bern', 'days': 3}
"""

from adapter import guess_format, parse, system_prompt, tool


def get_weather(city: str, days: int = 1) -> str:
    """Return the forecast for a city."""
    return f"{city}: rain for {days} days"


family = guess_format("Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf")
tools = [tool(get_weather)]
prompt = system_prompt(format=family or "hermes", tools=tools)  # put this before the conversation
print("In the prompt:", next(line for line in prompt.splitlines() if line.startswith("<function=")))

answer = """<tool_call>
<function=get_weather>
<parameter=city>
Bern
</parameter>
<parameter=days>
3
</parameter>
</function>
</tool_call>"""
(call,) = parse(answer, tools, format=family).calls
print("Parsed:", call.name, call.arguments)
