from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, Tool
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)]


def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice."""
    return f"reminded of {invoice}"


def approve(_: RunContext, requests: DeferredToolRequests) -> DeferredToolResults:
    calls = requests.approvals
    answers = {call.tool_call_id: input(f"{call.tool_name} {call.args}? ") == "y" for call in calls}
    return requests.build_results(approvals=answers)


model = OpenAIChatModel("m", provider=OpenAIProvider(base_url="http://127.0.0.1:8080/v1", api_key="none"))
tools = [open_invoices, Tool(send_reminder, requires_approval=True)]
agent = Agent(model, tools=tools, capabilities=[HandleDeferredToolCalls(handler=approve)])
print(agent.run_sync("Remind Acme of the oldest open invoice").output)
