"""Start the server from a program and stream tool calls with the plain openai client.

get_weather {"city": "Bern"}
"""

import subprocess
import sys

from openai import OpenAI

COMMAND = [sys.executable, "-m", "adapter", "serve", "--upstream", "http://127.0.0.1:8080", "--port", "0"]

with subprocess.Popen(COMMAND, stderr=subprocess.PIPE, text=True) as server:
    assert server.stderr is not None
    address = server.stderr.readline().split()[1].rstrip(",")  # serving http://127.0.0.1:41234/v1, from ...
    with OpenAI(base_url=address, api_key="none") as client:
        stream = client.chat.completions.create(
            model="qwen3",
            messages=[{"role": "user", "content": "What is the weather in Bern?"}],
            tools=[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
            stream=True,
        )
        for chunk in stream:
            for call in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                if call.function:
                    print(call.function.name, call.function.arguments)
    server.terminate()
