import asyncio

import adapter


@adapter.tool(effect="read")
def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)]


@adapter.tool(effect="read")
def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice."""
    return f"reminded of {invoice}"


def show(event: object) -> None:
    match event:
        case adapter.TextDelta(text=text):
            print(text, end="", flush=True)
        case adapter.ToolCall(name=name, arguments=arguments):
            print(name, arguments)


async def main() -> None:
    tools = [open_invoices, send_reminder]
    async with adapter.AsyncAgent(tools=tools, base_url="http://127.0.0.1:8080", observe=show) as agent:
        await agent.send("Remind Acme of the oldest open invoice")


asyncio.run(main())
