from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


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
print(Runner.run_sync(agent, "Remind Acme of the oldest open invoice").final_output)
