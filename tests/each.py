"""One test of many cases: all of them are tried, and the report names each that fails, with its reason.

A test of its own for each of thousands of files takes longer to find, to hand out and to report than to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

T = TypeVar("T")


def each(cases: Mapping[str, T], check: Callable[[T], object]) -> None:
    """``check`` every one of ``cases``, by their names. Raises what failed, as one group."""
    failed: dict[str, BaseException] = {}
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever is wrong with it
            error.add_note(f"in {name}")
            failed[name] = error
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(cases)}: {', '.join(failed)}", [*failed.values()])
