"""`adapter eval`: how often a model finishes a task of several steps, with the server's own tools and with ours.

::

    scenario.py     what a scenario is: a task, tools that answer, the right next step, whether it was done
    tables.py       scenarios that are data (TOML), in whose world every call has its result
    records.py      one world of records for tool selection among 5, 20 and 80 tools
    states.py       worlds with a state, in which a wrong argument has consequences
    papers.py       worlds whose results are long
    suites.py       the built-in scenarios, and files of the user's own
    running.py      one scenario, once, by a way of asking the model
    log.py          every run as a line of JSON, and going on from there
    scores.py       completion with its interval, and what it cost
    page.py         the results as one HTML file
"""

__all__ = ["metrics", "report_page", "run_log", "runner", "scenario", "suite_loader", "trace_view"]
