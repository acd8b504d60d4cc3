"""A text for a file that has no word in common with the conversation is retried once."""

import pytest

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.guardrails import Guardrails
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.conversation.guardrails.verdicts import Accept, Retry
from adapter.dialects import get_dialect
from adapter.parsing.parser import parse
from tests.model_text import call

BLADE = get_dialect("blade").tools
COPPER = "Write the word copper into a new file named a.txt."


def check(request, path, content, *made):
    guardrails = Guardrails(BLADE, on=parse_guardrails("off,invented_text"))
    answer = CandidateAnswer.from_turn(parse(call("write_file", path=path, content=content), BLADE))
    return guardrails, guardrails.check_response(CallHistory(request, made), answer), answer


@pytest.mark.parametrize(
    ("request_", "content"),
    [
        (COPPER, "This is a test file."),
        (COPPER, "Hello, World!"),
        (COPPER, "New file content"),
        (COPPER, "Listing directory contents with tree view."),
        ("erstell a.txt, da steht nur: Milch kaufen", "Lorem ipsum dolor"),
        ("Crée a.txt avec le texte bonjour", "This is some content 123"),
    ],
)
def test_invented_text_is_retried_once(request_, content):
    """`Qwen2.5-Coder-0.5B` wrote "This is a test file."."""
    guardrails, verdict, answer = check(request_, "a.txt", content)
    assert isinstance(verdict, Retry)
    assert verdict.guardrail == "invented_text"
    assert request_ in verdict.message
    assert guardrails.check_response(CallHistory(request_), answer) == Accept()


@pytest.mark.parametrize(
    ("request_", "content"),
    [
        (COPPER, "copper"),
        (COPPER, "Coppers"),
        (COPPER, ""),
        (COPPER, "---"),
        ("Create a.txt with the text: read file", "read file"),
        ("Create a.txt, which says 42", "42"),
        ("Create a.txt; it says that we search the workspace", "We search the workspace."),
        ("Make a.txt a poem about spring", "Roses are red\n" * 20),
        ("Copy the name into a.txt", "Nora Lindqvist"),
        ("Keep a note of it", "This is a test file."),
        ("Create a.txt with a haiku about spring", "Cherry blossoms fall"),
        ("Create a.txt for this app", "flask\nrequests>=2"),
    ],
)
def test_other_texts_are_accepted(request_, content):
    """Texts with a word of the request or of a result, long texts, and files that the request does not name."""
    read = PastCall("read_file", {"path": "b.txt"}, "name: Nora Lindqvist")
    assert check(request_, "a.txt", content, read)[1] == Accept()


@pytest.mark.parametrize(
    ("path", "content", "is_invented"),
    [
        ("paid/bill.pdf", "Your bill has been paid.", True),
        ("bill.pdf", "Your bill has been paid.", True),
        ("paid/bill.pdf", "Total: 12", False),
        ("paid/index.md", "- bill.pdf", False),
    ],
    ids=["new place", "old place", "text that was read", "another file"],
)
def test_request_to_move_a_file_gives_it_no_new_text(path, content, is_invented):
    """Qwen2.5-Coder-0.5B wrote a new file, and left the old one in its place."""
    read = PastCall("read_file", {"path": "bill.pdf"}, "Total: 12\n")
    _, verdict, _ = check("Please put bill.pdf in the folder paid", path, content, read)
    assert isinstance(verdict, Retry) == is_invented
    if isinstance(verdict, Retry):
        assert verdict.held_to == ("move_file",)
