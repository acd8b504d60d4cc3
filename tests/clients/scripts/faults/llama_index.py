"""LlamaIndex's model for servers of OpenAI's API."""

import os

from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(
    model="m", api_base=os.environ["ADAPTER_URL"] + "/v1", api_key="k", is_chat_model=True,
    is_function_calling_model=True, max_retries=0,
)  # fmt: skip


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


def ask(question, stream):
    tools = [FunctionTool.from_defaults(get_weather)]
    if stream:
        *_, said = model.stream_chat_with_tools(tools, question)
    else:
        said = model.chat_with_tools(tools, question)
    calls = model.get_tool_calls_from_response(said, error_on_no_tool_call=False)
    return said.message.content or "", [(call.tool_name, call.tool_kwargs) for call in calls], None
