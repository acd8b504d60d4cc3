from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer.

    Args:
        customer: The customer's name.
    """
    return [f"{customer}-{number}" for number in range(1, 4)]


@tool
def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice.

    Args:
        invoice: The invoice's number.
    """
    return f"reminded of {invoice}"


model = OpenAIModel("m", api_base="http://127.0.0.1:8080/v1", api_key="none")
agent = ToolCallingAgent(tools=[open_invoices, send_reminder], model=model, verbosity_level=0)
print(agent.run("Remind Acme of the oldest open invoice"))
