"""The built-in scenarios, and files of the user's own: TOML, or Python with a list called ``SCENARIOS``."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from adapter.core.errors import UsageError
from adapter.evaluation.scenario import Scenario
from adapter.evaluation.scenarios import long_context, stateful, tool_selection
from adapter.evaluation.toml_scenarios import read_scenarios

BUILT_IN = "built-in"


def built_in() -> list[Scenario]:
    """Easy ones first, within each kind those that belong together."""
    tables = read_scenarios(Path(__file__).with_name("tables.toml"))
    return sorted(
        tables + tool_selection.SCENARIOS + stateful.SCENARIOS + long_context.SCENARIOS, key=lambda each: not each.easy
    )


def load_suite(name: str = BUILT_IN) -> list[Scenario]:
    """The scenarios of a suite. A Python file is run: it is the user's own program.

    Raises UsageError for a file that cannot be read or holds none.
    """
    if name == BUILT_IN:
        return built_in()
    path = Path(name)
    if path.suffix == ".toml":
        scenarios = read_scenarios(path)
    elif path.suffix == ".py":
        scenarios = _of_python(path)
    else:
        raise UsageError(f"{name!r} is no suite: it is {BUILT_IN!r}, a .toml file or a .py file")
    if twice := [name for name, count in Counter(each.name for each in scenarios).items() if count > 1]:
        raise UsageError(f"{path}: there are two scenarios {twice[0]!r}; their runs could not be told apart")
    return scenarios


def _of_python(path: Path) -> list[Scenario]:
    try:
        found = runpy.run_path(str(path)).get("SCENARIOS")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # whatever a program of the user's raises
        raise UsageError(f"{path} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, Sequence) or not found or not all(isinstance(each, Scenario) for each in found):
        raise UsageError(f"{path} has no list SCENARIOS of adapter.evaluation.scenario.Scenario")
    return list(found)


def select_scenarios(
    scenarios: Sequence[Scenario], kinds: Sequence[str], names: Sequence[str], *, easy: bool
) -> list[Scenario]:
    """Those of these kinds or names, all without any. Raises UsageError for a kind or name that there is none of."""
    for wanted, there in ((kinds, {each.kind for each in scenarios}), (names, {each.name for each in scenarios})):
        if missing := [each for each in wanted if each not in there]:
            raise UsageError(f"there is no {missing[0]!r} among them; there are: {', '.join(sorted(there))}")
    found = [
        each
        for each in scenarios
        if (not (kinds or names) or each.kind in kinds or each.name in names) and (each.easy or not easy)
    ]
    if not found:
        raise UsageError("no scenario is left by these choices")
    return found
