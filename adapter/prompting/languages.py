"""Little words that decide, by language: English, German, French and Spanish, a few of Chinese.

A request is looked at for the words of all four, for it does not say what it is written in; so words that mean
something else in another of them are left out (Spanish "once" is eleven).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapter.values.lazy_pattern import lazy_pattern

PERCENT = r"(?:%|percent|per cent|prozent|pour cent|por ciento)"

_TWO_TO_TEN = {
    "en": "two three four five six seven eight nine ten",
    "de": "zwei drei vier fünf sechs sieben acht neun zehn",
    "fr": "deux trois quatre cinq six sept huit neuf dix",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez",
}
NUMBERS = {word: number for words in _TWO_TO_TEN.values() for number, word in enumerate(words.split(), start=2)}

_THOUSAND = {"en": "thousand", "de": "tausend", "fr": "mille", "es": "mil"}
_MILLION = {"en": "million", "de": "million millionen", "fr": "million millions", "es": "millón millones"}
_BILLION = {"en": "billion", "de": "milliarde milliarden", "fr": "milliard milliards"}
"""A "billion" is the English one."""
ZEROS = {
    word: zeros
    for zeros, table in ((3, _THOUSAND), (6, _MILLION), (9, _BILLION))
    for words in table.values()
    for word in words.split()
}
"""That such a word behind a number adds."""


def _words(table: Mapping[str, str]) -> frozenset[str]:
    return frozenset(word for words in table.values() for word in words.split())


AND = _words({"en": "and", "de": "und", "fr": "et", "es": "y"})
THEN = AND | _words(
    {
        "en": "then also",
        "de": "dann danach außerdem",
        "fr": "puis ensuite aussi",
        "es": "luego después también",
    }
)
"""Before what is to be done besides."""
AND_SIGNS, THEN_SIGNS = "、|和|与|及", "然后|再|并|，|。|；|！|？"
"""The same in Chinese, which writes no blanks."""
EACH = _words({"en": "both each per", "de": "beide beiden jeweils je", "fr": "chaque", "es": "ambos ambas cada"})
IN = _words({"en": "in near around within inside", "de": "bei nahe", "fr": "dans près à en", "es": "en cerca"})
"""Words before a place where something is, or is to be done."""
NOT = _words(
    {
        "en": "no not without exclude excluding skip omit except don never",
        "de": "ohne kein keine keinen nicht",
        "fr": "sans pas",
        "es": "sin",
    }
)
"""Before what is not wanted."""

ASKING = _words(
    {
        "en": "add book buy calculate change check compare compute convert create determine estimate fetch find get "
        "give generate help identify list look order play plan predict provide read retrieve search send set show "
        "start tell",
        "de": "berechne buche erstelle finde gib kaufe lies nenne schicke sende setze spiele suche zeig zeige",
        "fr": "achète affiche ajoute calcule cherche convertis crée donne envoie joue lis montre réserve trouve",
        "es": "añade busca calcula compra convierte crea dame encuentra envía lee muestra muéstrame pon reserva toca",
    }
)
"""Words that a request begins with, and no value does."""

_TOOLS = {"en": r"tools?", "de": r"werkzeuge?n?|tools?", "fr": r"outils?", "es": r"herramientas?"}
_WITHOUT = {
    "en": r"no|without|(?:not|don't) (?:use|call)",
    "de": r"ohne|keine?[nrs]?",
    "fr": r"sans|aucun|n'utilise[rz]? (?:pas|aucun)",
    "es": r"sin|ninguna|no (?:uses?|utilices?)",
    "zh": r"(?:不要?|别|无需)(?:使用|用|调用)(?:任何)?",
}
_WITH = {
    "en": r"use|call|with",
    "de": r"benutze|verwende|nutze|mit",
    "fr": r"utilise[rz]?|avec",
    "es": r"usa|utiliza|con",
    "zh": r"(?:使用|用|调用)(?:这个|该|一个)?",
}


def _before_tools(words: Mapping[str, str]) -> re.Pattern[str]:
    """With up to two words between: "without any other tool"."""
    each = (rf"(?:{words[language]})\s+(?:\w+\s+){{0,2}}?(?:[dl]')?(?:{_TOOLS[language]})" for language in _TOOLS)
    return re.compile(rf"(?i)\b(?:{'|'.join(each)})\b|{words['zh']}工具")


_WHY = {
    "en": r"why",
    "de": r"warum|wieso|weshalb",
    "fr": r"pourquoi",
    "es": r"por qué",
}
_WHY_ZH = "为什么|为何"
WHY = lazy_pattern(rf"(?i)^\W*(?:(?:{'|'.join(_WHY.values())})\b|{_WHY_ZH})")
"""At the beginning of what is answered in words."""

REFUSED, DEMANDED = _before_tools(_WITHOUT), _before_tools(_WITH)
