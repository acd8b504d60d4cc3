"""End a campaign early on Ctrl-C or SIGTERM, with the results so far and without leftover processes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(main: Callable[[], int | None]) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("STOPPED EARLY", flush=True)
        sys.exit(130)


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Yield an event that the first signal sets. A second one raises KeyboardInterrupt. For the main thread only."""
    asked = threading.Event()

    def stop(number: int, _: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt(signal.Signals(number).name)
        asked.set()

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_to_parent() -> None:
    """Ignore Ctrl-C in a child process of the campaign: the parent handles it and ends the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
