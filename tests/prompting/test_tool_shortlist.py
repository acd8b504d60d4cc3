"""The prompt describes the tools nearest to the request, and the model can search the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.agent.agent import Agent
from adapter.prompting.tool_shortlist import UserRequest, shortlist_tools
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.translation_options import PromptSettings, TranslationOptions
from adapter.tools.function_tools import tool
from adapter.tools.tool_set import ToolSet
from tests.model_text import Script
from tests.protocols.test_wire import joined, stream_of
from tests.server.test_wrap import completion

KINDS = ("invoice", "customer", "shipment", "ticket", "meeting", "report", "playlist", "recipe", "sensor", "license")
VERBS = ("create", "delete", "list", "update", "search", "export", "archive", "share")


def definition(verb: str, kind: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {f"{kind}_id": {"type": "string"}}, "required": [f"{kind}_id"]}
    described = {"name": f"{verb}_{kind}", "description": f"{verb.title()} a {kind}.", "parameters": parameters}
    return {"type": "function", "function": described}


MANY = [definition(verb, kind) for kind in KINDS for verb in VERBS]
TOOLS = ToolSet(MANY)
CALL = '<tool_call>\n{"name": "archive_ticket", "arguments": {"ticket_id": "7"}}\n</tool_call>'
FIND = '<tool_call>\n{"name": "find_tools", "arguments": {"query": "archive a ticket"}}\n</tool_call>'


@pytest.mark.parametrize("name", list(TOOLS))
def test_shortlist_contains_the_requested_tool(name):
    """By its words in another order and form."""
    verb, kind = name.split("_")
    few = shortlist_tools(TOOLS, [UserRequest(f"Which of the {kind}s should we {verb}? Please {verb} number 7.")], 5)
    assert few is not None
    assert name in few.shown
    assert len(few.shown) == 6
    assert list(few.all) == [*TOOLS, "find_tools"]


def test_short_tool_lists_are_not_shortened():
    assert shortlist_tools(TOOLS, [UserRequest("x")], 80) is None


def shown_after(*requests: str, used: frozenset[str] = frozenset()) -> list[str]:
    first, *later = requests
    few = shortlist_tools(TOOLS, [UserRequest(first), *(UserRequest(text, used) for text in later)], 5)
    assert few is not None
    return list(few.shown)


@pytest.mark.parametrize("later", ["Thanks, go on.", "Delete the invoice of Bob, too.", "Ok"])
def test_a_shortlist_stays_while_it_has_the_best_match(later):
    """For the prompt cache."""
    first = shown_after("Delete invoice 7")
    assert first == [*(name for name in TOOLS if name in first), "find_tools"]
    assert shown_after("Delete invoice 7", later, used=frozenset({"share_recipe"})) == first


def test_a_new_subject_adds_its_tools_at_the_end():
    first = shown_after("Delete invoice 7")
    later = shown_after("Delete invoice 7", "Archive the ticket", "Go on", used=frozenset({"delete_invoice"}))
    assert later[0] == "delete_invoice"
    assert "archive_ticket" in later
    assert len(later) == len(first)


def test_used_tools_remain():
    used = frozenset({"share_recipe", *list(TOOLS)[:8]})
    assert used < set(shown_after("Delete invoice 7", "Archive the ticket", used=used))


def request(**fields: Any) -> Any:
    body = {"model": "qwen3", "messages": [{"role": "user", "content": "Delete invoice 7"}], "tools": MANY, **fields}
    return translate_chat_request(body, TranslationOptions(prompt=PromptSettings(max_tools=5)))


def test_tool_outside_the_shortlist_can_be_called():
    """Calls of tools outside the prompt are parsed."""
    asked = request()
    prompt = asked.body["messages"][0]["content"]
    assert "delete_invoice" in prompt
    assert "archive_ticket" not in prompt
    assert "find_tools" in prompt
    stream = StreamedExchange(asked, 0)
    assert joined(stream.feed(stream_of(CALL)) + stream.close())[2][0]["name"] == "archive_ticket"


def test_search_is_answered_within_the_exchange():
    """The client sees only the call that follows."""
    for stream_arguments in (False, True):
        asked = translate_chat_request(
            {"model": "qwen3", "messages": [{"role": "user", "content": "Go"}], "tools": MANY},
            TranslationOptions(prompt=PromptSettings(max_tools=5), stream_arguments=stream_arguments),
        )
        stream = StreamedExchange(asked, 0)
        sent = stream.feed(stream_of(f"I search.\n{FIND}"))
        body = stream.build_next_body()
        assert body is not None
        assert '"name": "archive_ticket"' in body["messages"][-1]["content"]
        assert body["messages"][0] == asked.body["messages"][0]
        content, _, calls, reason = joined(sent + stream.feed(stream_of(CALL)) + stream.close())
        assert (content, [each["name"] for each in calls if "name" in each]) == ("I search.", ["archive_ticket"])
        assert reason == "tool_calls"


def test_number_of_searches_is_limited():
    """A model that only searches is stopped."""
    whole, bodies = BufferedExchange(request()), 0
    while not isinstance(answer := whole.feed(json.dumps(completion(FIND)).encode()), tuple):
        bodies += 1
        assert bodies < 9
    assert answer[0] == 200
    assert "find_tools" not in str(answer[1]["choices"])


def test_agent_searches_its_tools(tmp_path):
    """The search is a call with a result, like others."""

    def made(name: str) -> Any:
        def run(number: str) -> str:
            return f"{name} {number}"

        run.__name__ = name
        run.__doc__ = f"{name.replace('_', ' ').title()}."
        return tool(run)

    chat = Script(FIND, CALL.replace("ticket_id", "number"), "It is archived.")
    names = [f"{verb}_{kind}" for kind in KINDS for verb in VERBS]
    with Agent(tmp_path, chat, tools=map(made, names), approve="yolo", max_tools=6) as agent:
        done = agent.run("Delete the invoice")
    assert done.content == "It is archived."
    assert "delete_invoice" in str(chat.seen[0])
    assert "share_recipe" not in str(chat.seen[0])
    assert "archive_ticket 7" in str(chat.seen[-1])
