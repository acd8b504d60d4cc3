from pydantic_ai import Agent
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
print(agent.run_sync("Remind Acme of the oldest open invoice").output)
