"""Render the conversations with Hugging Face's own ``apply_chat_template``, for `benchmarks.own_prompts`.

    python -m benchmarks.reference_prompts FOLDER OUTPUT.json    # where transformers is installed; this need not be

Each template gets the conversations in the forms that model cards use, the documented one first: arguments as an object
or as its JSON, the content of an answer with only calls left out or empty, and ids unchanged or in the form that the
template names, such as Kimi K2's. The first form in which everything is shown counts. A conversation without such a
form cannot be rendered.
"""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.conversations import CONVERSATIONS, TOKENS, must_show


def tokenizer(source: str) -> Any:
    from tokenizers import Tokenizer, models  # type: ignore[import-not-found]
    from transformers import PreTrainedTokenizerFast  # type: ignore[import-not-found]

    words = {word: number for number, word in enumerate(TOKENS.values())}
    made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<unk>")), **TOKENS)
    made.chat_template = source
    return made


def put(messages: list[dict[str, Any]], is_object: bool, silence: str | None, is_named: bool) -> list[dict[str, Any]]:
    """Return the messages in one of the forms."""
    made, ids = deepcopy(messages), dict[str, str]()
    for message in made:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            if is_object:
                function["arguments"] = json.loads(function["arguments"])
            if is_named:
                ids[call["id"]] = f"functions.{function['name']}:{len(ids)}"
                call["id"] = ids[call["id"]]
        if message.get("tool_calls") and message["content"] is None:
            message["content"] = silence
        if "tool_call_id" in message:
            message["tool_call_id"] = ids.get(message["tool_call_id"], message["tool_call_id"])
    return made


def is_whole(prompt: str, name: str) -> bool:
    plain = prompt.replace('\\"', '"').replace("\\n", "\n").replace("\\u00e5", "å")
    asked = next(message["content"] for message in CONVERSATIONS[name][0] if message["role"] == "user")
    talk = prompt.partition(asked)[2]
    mangled = [f"{quote}{key}" for quote in ('\\"', "{'") for key in ("city", "title")]
    return all(word in plain for word in must_show(name)) and not any(word in talk for word in mangled)


def render(source: str, name: str) -> dict[str, Any]:
    messages, tools = CONVERSATIONS[name]
    told = "it leaves something out"
    for is_object, silence in product((True, False), (None, "")):
        told_messages = put(messages, is_object, silence, is_named="functions." in source)
        try:
            prompt = tokenizer(source).apply_chat_template(
                told_messages, tools=tools, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # noqa: BLE001  # whatever a template does is an answer here
            told = f"{type(error).__name__}: {error}"
            continue
        if is_whole(prompt, name):
            return {"prompt": prompt}
    return {"refused": told}


def main() -> None:
    folder, output = map(Path, sys.argv[1:])
    made = {
        path.name: {name: render(path.read_text(encoding="utf-8"), name) for name in CONVERSATIONS}
        for path in sorted(folder.glob("*.jinja"))
    }
    import transformers

    whole = {"transformers": transformers.__version__, "day": f"{datetime.now():%Y-%m-%d}", "templates": made}
    output.write_text(json.dumps(whole, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
