import adapter


@adapter.tool(effect="read")
def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)]


@adapter.tool(effect="read")
def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice."""
    return f"reminded of {invoice}"


with adapter.Agent(tools=[open_invoices, send_reminder], base_url="http://127.0.0.1:8080") as agent:
    print(agent.send("Remind Acme of the oldest open invoice").content)
