"""Give an agent your own tool in addition to the file tools, and forbid a tool with a rule.

done: answered
I wrote 3 invoices into invoices.txt.
"""

import adapter


@adapter.tool(effect="read")
def open_invoices(customer: str, limit: int = 10) -> list[str]:
    """List the unpaid invoices of a customer.

    Args:
        customer: The customer's name.
        limit: Maximum number of invoices.
    """
    return [f"{customer}-{number}" for number in range(1, 4)][:limit]


no_shell = adapter.PermissionRule.parse("deny", "run_command(*)")
with (
    adapter.Workspace("my-project", approve="auto-edit", tools=[open_invoices], rules=[no_shell]) as workspace,
    adapter.Agent(workspace, base_url="http://127.0.0.1:8080") as agent,
):
    done = agent.run("Write the open invoices of Acme into invoices.txt, a line each")
    print("done:", done.reason)
    print(done.content)
