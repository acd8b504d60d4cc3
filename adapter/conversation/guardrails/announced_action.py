"""Detect answers that end with an announced action ("Let me read the file:"), in several languages.

Only the last sentence counts, and only if the model announces work that a tool can do. Offers, questions, conditions
and text that the user requested ("write a mail that ...") are not announcements. A missed announcement only loses a
retry, but a false alarm costs a model call. The word lists are therefore short, and tests/conversation/guardrails
measures how well they match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_TAIL = 400
"""Number of characters at the end of an answer that are searched."""

_FLAGS = re.IGNORECASE | re.VERBOSE

_WORK = r"""(?:access|add|analy[sz]e|apply|book|browse|calculate|call|cancel|change|check|collect|compute|create|delete|
    do\s+(?:that|this)|double-?check|download|edit|examine|execute|explore|fetch|find|fix|gather|get|grep|implement|
    inspect|investigate|invoke|list|load|locate|look|make|modify|open|pull|query|read|remove|retrieve|review|run|scan|
    search|see\s+(?:what|if|whether|how|which|where)|send|test|try|update|use|verify|view|write)\b"""
_DOING = (
    r"(?:checking|collecting|exploring|fetching|gathering|getting|listing|looking|opening|reading|running|searching)\b"
)
_BEGIN = r"(?:start|begin|proceed|continue|go\s+ahead|try)\s+(?:by|with|to|and)\s+"

_ENGLISH = re.compile(
    rf"""\W*
    (?:(?:(?:please\s+)?hold\s+on|one\s+moment(?:,?\s+please)?|sure|ok(?:ay)?|great|alright|certainly|of\s+course|good|perfect|thanks?(?:\s+you)?|yes|right|absolutely|
      got\s+it)\W+)*
    (?:(?:now|first|next|then|so|and|to\s+(?:answer|begin|check|determine|do|find|fix|get|help|see|start)\b
      [^.:!?]{{0,90}}),?\s+)*
    (?:(?:let\s+me|let['’]?s|let\s+us|i\s*['’]ll|i\s+will|we\s*['’]ll|i\s*(?:['’]m|\s+am)\s+going\s+to)
      |(?:i|we)\s+(?:now\s+)?(?:need\s+to|have\s+to|should|must)(?=.*\b(?:first|now)\b))\s+
    (?:(?:also|first|just|next|now|please|quickly|then)\s+)*
    (?:(?:{_BEGIN})?(?:{_WORK}|{_DOING})(?!\s+(?:sure|you)\b)|(?:continue|proceed|start|begin)\s+with\b)""",
    _FLAGS,
)
_UNDER_WAY = re.compile(
    r"""\W*(?:(?:(?:please\s+)?(?:hold\s+on|one\s+moment)|ok(?:ay)?|sure|great|alright)\W+)*
    (?:now\s+(?:calling|checking|fetching|looking|retrieving|searching)\b|(?:i\s*['’]m|i\s+am)\s+(?:now\s+|currently\s+)?
        (?:checking|fetching|looking\s+(?:at|for|into|it|that|this|up)|opening|retrieving|searching\s+the)\b
      |(?:checking|fetching|loading|looking|retrieving|searching)\b[^.!?]{0,60}(?:\.\.\.|…)
      |(?:please\s+)?(?:bear\s+with\s+me|hold\s+on|wait)\b[^.!?]{0,20}\bwhile\s+(?:i|we)\b)""",
    _FLAGS,
)
"""Matches actions that the model claims to be performing."""
_GERMAN = r"""(?:(?:ich\s+(?:werde|will|muss)|(?:zuerst|jetzt|nun|als\s+nächstes|dann)\s+(?:werde|will|muss)\s+ich)\b|
    lass(?:en\s+sie)?\s+mich\b)[^.?!]*\b(?:abrufen|anschauen|ansehen|aufrufen|auflisten|ausführen|bearbeiten|durchsuchen|
    holen|laden|lesen|nachschauen|nachsehen|öffnen|prüfen|starten|suchen|überprüfen|ändern)\b"""
_FRENCH = r"""(?:je\s+vais|laisse[zr]?-moi|commençons\s+par)\s+(?:\w+\s+){0,2}(?:appeler|chercher|consulter|examiner|
    exécuter|lancer|lire|lister|modifier|ouvrir|rechercher|récupérer|regarder|utiliser|vérifier)\b"""
_SPANISH = r"""(?:(?:primero\s+|ahora\s+)?voy\s+a|déjame|permíteme|vamos\s+a)\s+(?:abrir|buscar|comprobar|consultar|
    ejecutar|examinar|leer|listar|llamar|mirar|modificar|obtener|revisar|usar|utilizar|verificar)\b"""
_PORTUGUESE = r"""(?:vou|deixe-me|vamos)\s+(?:abrir|buscar|chamar|consultar|executar|examinar|ler|listar|obter|
    procurar|usar|verificar)\b"""
_ITALIAN = r"""(?:vado\s+a|fammi|lascia(?:te)?mi|adesso\s+devo)\s+(?:aprire|cercare|chiamare|controllare|eseguire|
    guardare|leggere|recuperare|usare|verificare)\b"""
_RUSSIAN = r"""(?:(?:давайте|сейчас|теперь|сначала)\s+(?:я\s+)?|я\s+(?:сейчас|теперь|сначала)\s+)(?:вызову|выполню|
    запущу|найд[уёе]м?|откроем|открою|поищу|посмотрим|посмотрю|проверим|проверю|прочитаю)\b"""
_CHINESE = r"""(?:(?:首先|接下来|现在|那么)[，,]?\s*)?(?:让我|我来|我将|我会|我先|我需要)(?:先|来|去)?(?:一下)?
    (?:读取|查看|检查|搜索|查找|打开|运行|执行|调用|获取|查询|使用|列出|看看)"""
_JAPANESE = r"[^。！？\n]{0,40}を(?:読み|確認し|検索し|調べ|開き|実行し|取得し)(?:てみ)?ます"
_KOREAN = r"[^.!?\n]{0,40}(?:읽어|확인해|검색해|찾아|열어|실행해|조회해)\s*(?:보겠습니다|볼게요)"
_OTHERS = re.compile(
    r"\W*(?:"
    + "|".join((_GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _RUSSIAN, _CHINESE, _JAPANESE, _KOREAN))
    + ")",
    _FLAGS,
)

_WAIT = re.compile(
    r"""\W*(?:(?:please\s+)?(?:bear\s+with\s+me|hang\s+on|hold\s+on|stand\s+by|wait)(?:\s+(?:for\s+)?(?:a|one)\s+(?:moment|second))?
    |(?:please\s+)?(?:just\s+)?(?:give\s+me\s+)?(?:just\s+)?(?:a|one)\s+(?:moment|sec|second)(?:,?\s+please)?
    |einen\s+(?:augenblick|moment)(?:,?\s+bitte)?|un\s+(?:instant|moment)(?:,?\s+s['’]il\s+(?:vous|te)\s+pla[iî]t)?
    |un\s+momento(?:,?\s+por\s+favor)?|请稍[等候]|少々お待ちください|잠시만\s*기다려\s*주세요)\W*""",
    _FLAGS,
)
"""Matches a last sentence that asks the user to wait."""
_NEXT = re.compile(
    r"\W*(?:(?:ok(?:ay)?|so|now|and)\W+)*(?:(?:the|my)\s+)?next(?:\s+(?:action|call|step|tool))?(?:\s+is)?\W+"
    r"(?:to\s+(?:call|use)\s+)?(?P<tool>\w[\w ]*?)\W*",
    re.IGNORECASE,
)
"""Matches a last sentence that names a tool as the next step."""
_OPEN_END = re.compile(r"(?:[:：]|…|\.\.\.)\s*$")
_HERE = re.compile(r"\W*(?:here(?:\s+is|\s+are|['’]s)|first,|now,|then,)\s", re.IGNORECASE)
"""Matches a sentence that announces something if it ends with a colon or dots."""
_CONTINUES = re.compile(r"[:：]\s+\S+\s+\S")
"""Matches a sentence in which the announced text follows the colon."""

_NOT_NOW = re.compile(
    r"""\?|？|\b(?:if|once|when|after)\s+you\b|\bonce\s+(?:i|it|the|they|we|your)\b|\b(?:as\s+soon\s+as|whenever|until|unless|let\s+me\s+know|tomorrow|later|always)\b
    |\b(?:in\s+the\s+future|from\s+now\s+on|next\s+time|from\s+here\s+on)\b|\bplease\s+(?!\w*ll)\w+|\b(?:could|would)\s+you\b
    |\b(?:wenn|sobald|bitte)\b|\bsi\s+(?:vous|tu|me|quieres|desea)\b|\b(?:dès\s+que|quand|cuando|quando|por\s+favor)\b
    |\bse\s+(?:vuoi|mi)\b|\b(?:пожалуйста|если|когда)\b|请|如果|ください|もし|[よたけせれ]れば|주시면|원하시면""",
    _FLAGS,
)
_WRITING = re.compile(
    r"""\b(?:translat|rephras|paraphras|rewrite|reword|draft|compose|role-?play|pretend|proofread|
    übersetz|formulier|antworte|tradu|rédige|redact|перевед)\w*|翻译|翻訳|번역
    |\bhow\s+(?:do|would)\s+\w+\s+say\b|\b(?:reply|respond)\s+to\b|\b(?:a|your)\s+reply\b
    |\bwrite\s+(?:an?|the|me|some|two|three)\s+(?:\w+\s+){0,3}(?:e?-?mail|letter|message|reply|story|poem|speech|
    dialogue|sentence|note|text|post|tweet|script|scene)""",
    _FLAGS,
)
"""Matches requests to write something. The answer may then speak for another person."""
_LETTER = re.compile(
    r"\W*(?:dear|hi|hello|hey|subject:|sehr\s+geehrte|liebe|hallo|cher|chère|bonjour|hola|estimad)\b[^.!?\n]{0,60}\n",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'“(*_`]*\w)|(?<=[。！？])|\n+")


def announces_action(content: str, request: str = "", tools: Iterable[str] = ()) -> bool:
    """Return whether ``content`` ends by announcing an action. ``request``: the user's request. ``tools``: names of the
    available tools."""
    text = content.rstrip("*_ \t\r\n")
    if not text or text[-1] in "\"”»'’`)]}|>" or _WRITING.search(request[-2_000:]) or _LETTER.match(text[:200]):
        return False
    sentences = [piece for piece in _SENTENCE.split(text[-MAX_TAIL:]) if piece.strip()]
    is_to_wait = bool(sentences) and _WAIT.fullmatch(sentences[-1]) is not None
    if not (sentences := sentences[:-1] if is_to_wait else sentences):
        return is_to_wait
    last = sentences[-1].strip()
    if (len(sentences) == 1 and len(text) > MAX_TAIL) or _NOT_NOW.search(" ".join(sentences[-2:])):
        return False
    if _names_next(last, tools):
        return True
    if _CONTINUES.search(last):
        return False
    return bool(
        _ENGLISH.match(last)
        or _UNDER_WAY.match(last)
        or _OTHERS.match(last)
        or (_OPEN_END.search(last) and _HERE.match(last))
    )


def _names_next(sentence: str, tools: Iterable[str]) -> bool:
    match = _NEXT.fullmatch(sentence)
    return match is not None and any(_normalize_name(match["tool"]) == _normalize_name(tool) for tool in tools)


def _normalize_name(name: str) -> str:
    return name.lower().replace("_", " ").strip()
