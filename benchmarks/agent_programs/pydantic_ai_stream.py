import asyncio

from pydantic_ai import Agent, FunctionToolCallEvent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)]


def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice."""
    return f"reminded of {invoice}"


model = OpenAIChatModel("m", provider=OpenAIProvider(base_url="http://127.0.0.1:8080/v1", api_key="none"))
agent = Agent(model, tools=[open_invoices, send_reminder])


async def main() -> None:
    async with agent.run_stream_events("Remind Acme of the oldest open invoice") as events:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    print(text, end="", flush=True)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    print(text, end="", flush=True)
                case FunctionToolCallEvent(part=call):
                    print(call.tool_name, call.args)


asyncio.run(main())
