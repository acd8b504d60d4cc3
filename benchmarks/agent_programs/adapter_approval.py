import adapter


@adapter.tool(effect="read")
def open_invoices(customer: str) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)]


def send_reminder(invoice: str) -> str:
    """Remind the customer of an invoice."""
    return f"reminded of {invoice}"


def approve(request: adapter.ApprovalRequest) -> bool:
    return input(f"{request.summary}? ") == "y"


tools = [open_invoices, send_reminder]
with adapter.Agent(tools=tools, base_url="http://127.0.0.1:8080", approve=approve) as agent:
    print(agent.send("Remind Acme of the oldest open invoice").content)
