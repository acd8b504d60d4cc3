"""A graph of LangGraph: one node queries the model, one runs its tools, streamed."""

import os
import sys

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


base = os.environ["ADAPTER_URL"] + "/v1"
model = ChatOpenAI(model="m", base_url=base, use_responses_api=sys.argv[1] == "responses").bind_tools([get_weather])
graph = StateGraph(MessagesState)
graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([get_weather]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
said = []
asked = {"messages": [("user", "Weather in Bern and Basel?")]}
for message, _ in graph.compile().stream(asked, stream_mode="messages"):
    said.append(message.text)
print("".join(said))
