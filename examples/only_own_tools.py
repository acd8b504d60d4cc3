"""An agent for your own functions: it needs no folder, and has no other tools.

asked: call open_invoices(customer='Acme', limit=10)
Acme has 3 open invoices.
"""

import adapter


def open_invoices(customer: str, limit: int = 10) -> list[str]:
    """List the unpaid invoices of a customer."""
    return [f"{customer}-{number}" for number in range(1, 4)][:limit]


def approve(request: adapter.ApprovalRequest) -> bool:
    print("asked:", request.summary)
    return True


with adapter.Agent(tools=[open_invoices], base_url="http://127.0.0.1:8080", approve=approve) as agent:
    print(agent.send("How many open invoices does Acme have?").content)
