"""Ask a very small model whether a request wants a file to be changed, if no known verb says so.

Word lists cannot know every way to ask for a change ("guests.txt: Oma is missing"), in any language. The model decides
between seven kinds, after a few examples. Qwen2.5-Coder-0.5B chose the right kind for 71 of 82 requests without a known
verb.
"""

from __future__ import annotations

from adapter.backends.constraint_fields import build_grammar_fields
from adapter.backends.endpoint_discovery import Kind
from adapter.conversation.message_rendering import Message
from adapter.core.events import JsonObject
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens
from adapter.prompting.intent.text_values import find_paths
from adapter.prompting.intent.verbs import find_requested_action, is_question

MAX_REQUEST = 1_000
"""Maximum length of a request that is classified, in characters."""
_KINDS = ("edit", "rename", "create", "delete", "move", "run", "answer")
_GRAMMAR = "root ::= " + " | ".join(f'"{kind}"' for kind in _KINDS)
_SYSTEM = (
    "Reply with the kind of the request: edit (a file), rename (a name in code), create, delete, move, "
    "run (a command) or answer."
)
_EXAMPLES = (
    ("Delete build.log, we do not need it.", "delete"),
    ("How many rows does sales.csv have?", "answer"),
    ("In der Datei brief.txt steht Hambrug, das muss Hamburg sein.", "edit"),
    ("Run make check and tell me what is wrong.", "run"),
    ("schreib eine neue datei plan.txt mit dem text: los", "create"),
    ("quel est le numéro de téléphone dans contact.md ?", "answer"),
    ("put logo.svg into the directory assets", "move"),
    ("The color in theme.css should be blue", "edit"),
    ("Rename the method go to start in car.py", "rename"),
    ("getItem should be called get_item in lib.js and main.js", "rename"),
    ("The license in pkg.toml, please", "answer"),
    ("Bob left, no longer list him in team.txt", "edit"),
    ("x.txt -> old/x.txt", "move"),
    ("Ich möchte wissen, wer in liste.csv fehlt", "answer"),
)


def needs_classification(request: str) -> bool:
    """Return whether the model should classify a request.

    Such a request names a file and is not a question. It begins with no known verb, or with a verb for an edit, because
    it may ask for a renaming.
    """
    is_short = len(request) <= MAX_REQUEST and find_paths(request) != []
    return is_short and find_requested_action(request)[0] in ("", "edit") and not is_question(request)


def build_classification(kind: Kind, request: str, format: Format) -> tuple[list[Message], JsonObject] | None:
    """Return the messages and the request fields that make a model answer with one of the kinds. Return None if the
    server cannot limit answers to a grammar."""
    limits = build_grammar_fields(kind, _GRAMMAR)
    messages: list[Message] = [{"role": "system", "content": _SYSTEM}]
    for text, answer in _EXAMPLES:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
    messages.append({"role": "user", "content": escape_control_tokens(request, format)})
    return (messages, {**limits, "max_tokens": 8, "temperature": 0}) if limits else None


def read_classification(request: str, answer: str, *, file_exists: bool) -> str:
    """Return the kind of ``request`` as in `CallHistory.classified`, from the model's answer.

    ``file_exists``: whether the first file that the request names exists. A missing file can only be created. A known
    verb in the request takes precedence over the model's answer.
    """
    usable = {*_KINDS} - {"create"} if file_exists else {"create"}
    if find_requested_action(request)[0]:
        usable &= {"rename"}
    return answer if answer in usable else ""
