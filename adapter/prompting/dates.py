"""The dates that a request says, written as a parameter wants them: "July 10, 2022" is 2022-07-10 for YYYY-MM-DD."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date

from adapter.values.events import JsonObject
from adapter.values.lazy_pattern import lazy_pattern

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PART = r"(YYYY|MM|DD)"
_WANTED = lazy_pattern(rf"(?i)\b{_PART}([-/.]){_PART}\2{_PART}\b")
_ISO = lazy_pattern(r"\b\d{4}-\d{2}-\d{2}\b")
_CODES = {"YYYY": "%Y", "MM": "%m", "DD": "%d"}


def written(texts: Sequence[str], schema: JsonObject) -> list[str]:
    """As the definition says that dates are to be written; as they stand where it does not."""
    wanted = _format(schema)
    if wanted is None:
        return list(texts)
    days = [(text, _read(text)) for text in texts]
    return list(dict.fromkeys(text if day is None else day.strftime(wanted) for text, day in days))


def _format(schema: JsonObject) -> str | None:
    about = str(schema.get("description") or "")
    if wanted := _WANTED.search(about):
        one, between, two, three = wanted.groups()
        return between.join(_CODES[part.upper()] for part in (one, two, three))
    return "%Y-%m-%d" if schema.get("format") == "date" or _ISO.search(about) else None


def _read(text: str) -> date | None:
    """The month before the day where figures do not tell, as in English."""
    numbers = [int(figures) for figures in re.findall(r"\d+", text)]
    with suppress(ValueError):
        if name := re.search(r"[A-Za-z]{3,}", text):
            day, year = numbers
            return date(year, 1 + _MONTHS.index(name[0][:3].lower()), day)
        one, two, three = numbers
        if one > 31:
            return date(one, two, three)
        return date(three, two, one) if one > 12 else date(three, one, two)
    return None
