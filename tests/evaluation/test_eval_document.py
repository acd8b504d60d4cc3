"""docs/evaluate.md: its suites run, and it counts the scenarios; docs/performance.md describes the simulated model."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from adapter.evaluation.scenario import KINDS, perform
from adapter.evaluation.suite_loader import load_built_in, load_suite
from benchmarks.faulty_model import CorrectionRates
from benchmarks.guardrails import count_needed_answers
from benchmarks.mistakes import MISTAKES

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "evaluate.md").read_text(encoding="utf-8")
MEASURED = " ".join((DOCS / "performance.md").read_text(encoding="utf-8").split())


def test_documented_suites_are_valid(tmp_path):
    for language, suffix in (("toml", "toml"), ("python", "py")):
        found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        assert found is not None
        file = tmp_path / f"suite.{suffix}"
        file.write_text(found[1], encoding="utf-8")
        (scenario,) = load_suite(str(file))
        made, answer = scenario.solution
        world = scenario.world()
        assert scenario.check(world, [], answer) != ""
        again = [perform(scenario, world, each.name, each.arguments) for each in made]
        assert scenario.check(world, again, answer) == ""


def test_documented_counts_match():
    """Kinds and scenarios, the longest of them, mistakes and their mending."""
    scenarios = load_built_in()
    rows = dict(re.findall(r"^\| ([\w ]+) \| (\d+) \|", PAGE, re.MULTILINE))
    assert {kind: int(rows[kind]) for kind in KINDS} == Counter(each.kind for each in scenarios)
    assert f"a model {len(scenarios)} tasks of up to six steps" in " ".join(PAGE.split())
    assert max(map(count_needed_answers, scenarios)) - 1 == 6
    assert "thirteen mistakes" in MEASURED
    assert len(MISTAKES) == 13
    mending = CorrectionRates()
    assert f"a probability of {mending.named} if" in MEASURED
    assert f"{mending.told} if it reports anything" in " ".join(MEASURED.split())
