"""Load the built-in scenarios and the user's own files: TOML, or Python with a list called ``SCENARIOS``."""

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


def load_built_in() -> list[Scenario]:
    """Load the built-in scenarios. Easy ones come first."""
    toml = read_scenarios(Path(__file__).with_name("tables.toml"))
    return sorted(
        toml + tool_selection.SCENARIOS + stateful.SCENARIOS + long_context.SCENARIOS, key=lambda each: not each.easy
    )


def load_suite(name: str = BUILT_IN) -> list[Scenario]:
    """Load a suite of scenarios: the built-in one, or a file ``name``. A Python file is run without a sandbox.

    Raises UsageError if the file cannot be loaded, contains no scenarios, or gives two scenarios the same name.
    """
    if name == BUILT_IN:
        return load_built_in()
    path = Path(name)
    if path.suffix == ".toml":
        scenarios = read_scenarios(path)
    elif path.suffix == ".py":
        scenarios = _load_python(path)
    else:
        raise UsageError(f"unknown suite {name!r}: expected {BUILT_IN!r}, a .toml file or a .py file")
    if duplicates := [name for name, count in Counter(each.name for each in scenarios).items() if count > 1]:
        raise UsageError(f"{path}: two scenarios are called {duplicates[0]!r}; give each a unique name")
    return scenarios


def _load_python(path: Path) -> list[Scenario]:
    try:
        found = runpy.run_path(str(path)).get("SCENARIOS")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # the user's program may raise any exception
        raise UsageError(f"cannot load {path}: it raised {type(error).__name__}: {error}") from error
    if not isinstance(found, Sequence) or not found or not all(isinstance(each, Scenario) for each in found):
        raise UsageError(f"{path} must define SCENARIOS, a list of adapter.evaluation.scenario.Scenario")
    return list(found)


def select_scenarios(
    scenarios: Sequence[Scenario], kinds: Sequence[str], names: Sequence[str], *, easy: bool
) -> list[Scenario]:
    """Return the scenarios that have one of ``kinds`` or ``names``, or all scenarios if both are empty.

    If ``easy`` is true, only easy scenarios are returned. Raises UsageError for an unknown kind or name, or if no
    scenario is left.
    """
    for requested, known in ((kinds, {each.kind for each in scenarios}), (names, {each.name for each in scenarios})):
        if unknown := [name for name in requested if name not in known]:
            raise UsageError(f"unknown scenario or kind {unknown[0]!r}; expected one of: {', '.join(sorted(known))}")
    found = [
        each
        for each in scenarios
        if (not (kinds or names) or each.kind in kinds or each.name in names) and (each.easy or not easy)
    ]
    if not found:
        raise UsageError("no scenario matches --kind, --scenario and --easy together; `--list` shows the scenarios")
    return found
