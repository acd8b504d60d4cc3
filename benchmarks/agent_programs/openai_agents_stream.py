import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent


@function_tool
def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)]


@function_tool
def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice."""
    return f"reminded of {invoice}"


set_tracing_disabled(True)
model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url="http://127.0.0.1:8080/v1", api_key="none"))
agent = Agent(name="Invoices", model=model, tools=[open_invoices, send_reminder])


async def main() -> None:
    result = Runner.run_streamed(agent, "Remind Acme of the oldest open invoice")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            print(event.data.delta, end="", flush=True)
        elif event.type == "run_item_stream_event" and event.name == "tool_called":
            print(event.item.raw_item.name, event.item.raw_item.arguments)


asyncio.run(main())
