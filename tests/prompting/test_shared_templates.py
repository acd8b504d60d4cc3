"""Real templates, if these are next to the repository: whole conversations, and no active tokens from texts."""

import json
import re
from pathlib import Path

import pytest

from adapter.backends.prompt_discovery import probe_capabilities
from adapter.parsing.formats import get_format, guess_format
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.template_messages import prepare_template_messages, prepare_tool_definitions
from adapter.protocols.tool_definitions import parse_tool_set
from benchmarks.conversations import CONVERSATIONS, MANY, TOKENS, WEATHER, must_show

ROOT = Path(__file__).parents[2]
FOLDERS = [folder for up in (1, 2) if (folder := ROOT.parents[up - 1] / "shared" / "templates").is_dir()]
FILES = sorted(FOLDERS[0].glob("*.jinja")) if FOLDERS else []
REASON = "the templates of real models are not part of the project: put them into ../shared/templates"

pytestmark = pytest.mark.skipif(not FILES, reason=REASON)
each_template = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def filled(source, messages, tools):
    try:
        return render_chat_template(ChatTemplate(source, TOKENS), messages, tools)
    except ChatTemplateError:
        return None


def prompt_of(source, messages, tools):
    """The prompt that a client's request becomes; skips a template that has no place for tools."""
    traits = probe_capabilities(lambda messages, tools: filled(source, messages, tools))
    if traits is None:
        pytest.skip("no place for tools")
    format = get_format(guess_format(None, source) or "hermes")
    known = parse_tool_set(tools)
    told = prepare_template_messages(Conversation(messages), traits, format, known)
    return filled(source, told.messages, prepare_tool_definitions(tools, known, format))


@each_template
def test_template_prompt_contains_the_whole_conversation(file):
    """In all conversations that the template accepts."""
    source = file.read_text(encoding="utf-8")
    for name, (messages, tools) in CONVERSATIONS.items():
        prompt = prompt_of(source, messages, tools)
        if prompt is None and (tools is MANY or "r-plus" in file.stem):
            continue  # some cannot take types in a list, or parameters without a description
        plain = (prompt or "").replace('\\"', '"').replace("\\n", "\n").replace("\\u00e5", "å")
        assert [word for word in must_show(name) if word not in plain] == [], name


MARKERS = re.compile(r"<[|｜][^<>\s]*[|｜]>|</?[a-z_]+[|｜]>|\[/?[A-Z_]{2,}\]|</?(?:tool_|think|seed:|im_)\w*>|</?s>")
"""Control tokens in a template's source, and the tags around calls, results and reasoning."""


@each_template
def test_template_prompt_has_no_active_tokens_from_texts(file):
    """A text with all markers of the template adds none to the prompt."""
    source = file.read_text(encoding="utf-8")
    traits = probe_capabilities(lambda messages, tools: filled(source, messages, tools))
    markers = sorted({*MARKERS.findall(source), *(traits.closers if traits else ())})
    acting = " ".join(markers)

    def talk(text):
        function = {"name": "get_weather", "arguments": json.dumps({"city": text})}
        call = {"id": "callOslo1", "type": "function", "function": function}
        return [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "callOslo1", "name": "get_weather", "content": text},
        ]

    marked, plain = prompt_of(source, talk(acting), [WEATHER]), prompt_of(source, talk("harmless"), [WEATHER])
    if plain is None or marked is None:
        pytest.skip("the template refuses the conversation")
    assert [marker for marker in markers if marked.count(marker) != plain.count(marker)] == []
