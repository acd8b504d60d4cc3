"""The currencies that a request names, as the codes of ISO 4217 that tools take: "200 US dollars" is USD."""

from __future__ import annotations

from adapter.values.lazy_pattern import lazy_pattern

_NAMES = {
    "EUR": r"euros?",
    "GBP": r"(?:british )?pounds?(?: sterling)?",
    "JPY": r"(?:japanese )?yen",
    "CNY": r"(?:chinese )?(?:yuan|renminbi)",
    "INR": r"(?:indian )?rupees?",
    "CHF": r"(?:swiss )?(?:francs?|franken)",
    "CAD": r"canadian dollars?",
    "AUD": r"australian dollars?",
    "NZD": r"new zealand dollars?",
    "SGD": r"singapore dollars?",
    "HKD": r"hong kong dollars?",
    "KRW": r"(?:south )?korean won",
    "MXN": r"mexican pesos?",
    "BRL": r"(?:brazilian )?reais|brazilian reals?",
    "ZAR": r"south african rand",
    "SEK": r"swedish kron(?:a|or)",
    "NOK": r"norwegian kron(?:e|er)",
    "DKK": r"danish kron(?:e|er)",
    "PLN": r"(?:polish )?z[lł]oty(?:s|ch)?",
    "TRY": r"turkish liras?",
    "THB": r"(?:thai )?baht",
    "USD": r"(?:(?:us|u\.s\.|american)[ -])?dollars?",
}
_ANY = "|".join(rf"(?P<{code}>(?i:{names})|{code})" for code, names in _NAMES.items())
_SAID = lazy_pattern(rf"(?P<amount>\d\s?)?\b(?:{_ANY})(?!\w)")


def said(request: str) -> list[str]:
    """Codes, each once: first that of an amount, then in their order."""
    found = [(match["amount"] is None, match.lastgroup or "") for match in _SAID.finditer(request)]
    return list(dict.fromkeys(code for _, code in sorted(found, key=lambda pair: pair[0])))
