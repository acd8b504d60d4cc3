"""`adapter probe`: which way of calling tools a model on a server does best, found by trying.

::

    tasks.py     what is asked, and which answers are right
    asking.py    one task in one setup on a real server
    halving.py   which setups get how many tasks
    page.py      the results as one HTML file
"""

__all__ = ["report_page", "successive_halving", "task_runner", "tasks"]
