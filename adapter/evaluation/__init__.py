"""Measure how often a model completes multi-step tasks (`adapter eval`).

Tasks are run with the server's own tool calling, or with this package's.

::

    scenario.py         a scenario: a task, working tools, the correct next step, and a check of the result
    toml_scenarios.py   scenarios defined in TOML, with a fixed result for each call
    scenarios/          the other built-in scenarios: tool selection, stateful environments, long results
    suite_loader.py     the built-in suite, and the user's own files
    scenario_runner.py  runs one scenario with an OpenAI client or with `Agent`
    run_log.py          records every run as a JSON line, to continue an interrupted evaluation
    eval_scores.py      completion rate with its interval, and mean costs
    eval_report_page.py the results as an HTML file
    probe/              `adapter probe`, which finds the best setup for a model
"""

__all__ = [
    "eval_report_page", "eval_scores", "eval_view_data", "run_log", "scenario", "scenario_runner", "suite_loader",
]  # fmt: skip
