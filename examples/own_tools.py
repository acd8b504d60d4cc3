"""An agent with a tool of yours beside those for files; `Rule` says what it may never do.

done: answered
I wrote 3 invoices into invoices.txt.
"""

import adapter


@adapter.tool(effect="read")
def open_invoices(customer: str, most: int = 10) -> list[str]:
    """The invoices that a customer has not paid.

    Args:
        customer: The customer's name.
        most: At most so many.
    """
    return [f"{customer}-{number}" for number in range(1, 4)][:most]


no_shell = adapter.Rule.parse("deny", "run_command(*)")
with (
    adapter.Workspace("my-project", approve="auto-edit", tools=[open_invoices], rules=[no_shell]) as workspace,
    adapter.Agent(workspace, base_url="http://127.0.0.1:8080") as agent,
):
    done = agent.run("Write the open invoices of Acme into invoices.txt, a line each")
    print("done:", done.reason)
    print(done.content)
