"""Whether true edits of real files leave them parsing: `python -m benchmarks.parsing_edits --repositories DIR...`

The edits are hunks of real commits to Python, JavaScript, JSON, YAML and TOML files that parse before
and after them, written down with every slip of `benchmarks.corruptions` and `benchmarks.one_sided`.
For each language: how many were right, refused and wrong, and how many of those that were applied left a
file that parses no longer; ours, ours without its last check (`adapter.editing.syntax_check`), and exact
replacement. Exits with 1 when ours broke more files than exact replacement did.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import yaml

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.syntax_check import MAX_SECONDS
from adapter.outline.languages import language_of
from adapter.outline.syntax import first_syntax_error
from benchmarks.bench_edits import exact_replace, ours
from benchmarks.commits import Commits
from benchmarks.corruptions import KINDS, Case, Patches
from benchmarks.one_sided import ONE_SIDED

SUFFIXES = (".py", ".js", ".json", ".yaml", ".yml", ".toml")
TRIES = 40
"""Edits drawn for each case of a kind, which may not apply or not parse."""


def parses(text: str, path: str) -> bool:
    """Whether ``text`` is of the language that the name says, by readers that are not ours."""
    suffix = Path(path).suffix
    try:
        if suffix == ".py":
            compile(text.removeprefix("\ufeff"), "benchmark", "exec", dont_inherit=True)
        elif suffix == ".json":
            json.loads(text.removeprefix("\ufeff"))
        elif suffix == ".toml":
            tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
        elif suffix == ".js":
            language = language_of(path)
            return language is not None and first_syntax_error(text, language, MAX_SECONDS) is None
        else:
            list(yaml.safe_load_all(text))
    except (SyntaxError, ValueError, RecursionError, yaml.YAMLError):
        return False
    return True


def cases(random: Random, commits: Commits, per_kind: int) -> Iterator[Case]:
    """At most ``per_kind`` cases of every kind and language whose file parses before and after."""
    for suffix in sorted(commits.of_suffix):
        for make in (*KINDS, *ONE_SIDED):
            count = 0
            for _ in range(TRIES * per_kind):
                edit = commits.edit(suffix)
                case = make(random, edit) if edit else None
                if edit is None or case is None or case.expected is None:
                    continue
                if parses(case.text, edit.source) and parses(case.expected, edit.source):
                    yield replace(case, source=edit.source)
                    count += 1
                if count == per_kind:
                    break


def ours_checked(path: str, text: str, patches: Patches) -> str | None:
    try:
        return patch_text(text, patches, path).text
    except EditError:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repositories", type=Path, nargs="+", required=True)
    parser.add_argument("--per-kind", type=int, default=5, help="cases of each kind and language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="the cases in which ours is wrong or breaks the file")
    options = parser.parse_args()
    random = Random(options.seed)
    drawn = list(cases(random, Commits(random, options.repositories, SUFFIXES), options.per_kind))
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for case in drawn:
        appliers: dict[str, Callable[[str, Patches], str | None]] = {
            "ours": partial(ours_checked, case.source),
            "ours, unchecked": ours,
            "exact": exact_replace,
        }
        for name, apply in appliers.items():
            got = apply(case.text, case.patches)
            said = "right" if got == case.expected else "refused" if got is None else "wrong"
            broken = got is not None and not parses(got, case.source)
            for language in (Path(case.source).suffix, "all"):
                counts[language, name].update([said, "cases", *(["broken"] if broken else [])])
            if options.show and name == "ours" and (broken or said == "wrong"):
                print(f"--- {case.kind}: {said}{', broken' * broken} ({case.source})")
                for patch in case.patches:
                    print(f"old:\n{patch['old_text']}\nnew:\n{patch['new_text']}")
    return _reported(counts)


def _reported(counts: dict[tuple[str, str], Counter[str]]) -> int:
    print(f"{'language':10} {'':16} {'cases':>6} {'right':>6} {'refused':>8} {'wrong':>6} {'broken':>7}")
    for language in sorted({language for language, _ in counts}):
        for name in _names(counts):
            count = counts[language, name]
            cells = (f"{count[key]:{width}}" for key, width in _COLUMNS)
            print(f"{language:10} {name:16} {' '.join(cells)}")
    more = counts["all", "ours"]["broken"] - counts["all", "exact"]["broken"]
    print(f"files that parsed and do not after an applied edit: ours {counts['all', 'ours']['broken']}, "
          f"exact {counts['all', 'exact']['broken']}")  # fmt: skip
    return 1 if more > 0 else 0


_COLUMNS = (("cases", 6), ("right", 6), ("refused", 8), ("wrong", 6), ("broken", 7))


def _names(counts: dict[tuple[str, str], Counter[str]]) -> Sequence[str]:
    return list(dict.fromkeys(name for _, name in counts))


if __name__ == "__main__":
    sys.exit(main())
