"""Find the tool-calling setup that works best for a model on its server (`adapter probe`).

::

    tasks.py               the tasks, with a check of the answers
    probe_task_runner.py   runs one task in one setup on a real server
    successive_halving.py  decides how many tasks each setup gets
    server_faults.py       recognizes the server's faults in the answers
    shared_result.py       the results in a form that can be published
    probe_report_page.py   the results as an HTML file
"""

__all__ = ["probe_report_page", "probe_task_runner", "server_faults", "shared_result", "successive_halving", "tasks"]
