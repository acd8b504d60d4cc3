"""Appended to each Python script: ask for each case, and print the client's reaction."""

import json
import signal
import sys


def _late(*_):
    raise TimeoutError("did not end within 30 s")


signal.signal(signal.SIGALRM, _late)
for case in sys.argv[2:]:
    fault, how = case.split(":")
    said = {"case": case, "error": None, "text": "", "calls": [], "finish": None}
    signal.alarm(30)
    try:
        question = f"Weather in Bern? fault={fault}"
        said["text"], said["calls"], said["finish"] = ask(question, how == "streamed")  # noqa: F821  # the script's
    except Exception as error:  # noqa: BLE001  # of any library
        said["error"] = f"{type(error).__module__}.{type(error).__name__}: {error}"
        said["calls"] = getattr(error, "calls", [])
        said["status"] = getattr(error, "status_code", None)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        said["retry_after"] = headers.get("retry-after")
    signal.alarm(0)
    print(json.dumps(said, default=str), flush=True)
