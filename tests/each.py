"""One test of many cases: all of them are tried, and the report names each that fails, with its reason.

A separate test for each of thousands of files takes longer to collect and report than to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

T = TypeVar("T")


def each(cases: Mapping[str, T], check: Callable[[T], object]) -> None:
    """Call ``check`` with each of ``cases``. Raises all failures as one group."""
    failed: dict[str, BaseException] = {}
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever is wrong with it
            error.add_note(f"in {name}")
            failed[name] = error
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(cases)}: {', '.join(failed)}", [*failed.values()])
