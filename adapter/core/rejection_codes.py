"""Reasons why text that looks like a call is rejected, by the code in `RejectedCall.reason`."""

from __future__ import annotations

REJECTION_REASONS: dict[str, str] = {
    "inline-code": "it is in inline code",
    "quotation": "it is in a quotation or a table",
    "code-fence": "it is in a code fence that contains more than the call, or that more text follows",
    "echoed-result": "it is in a copy of a tool's result",
    "later-turn": "it comes after the model started to write another speaker's turn",
    "reasoning": "it is a draft in the reasoning",
    "no-body": "no call follows the marker",
    "no-markers": "it lacks its format's markers, and the policy requires them",
    "text-follows": "it lacks its format's markers, and text follows it",
    "unknown-tool": "it does not name a tool of this session, and lacks its format's markers or is in a sentence",
    "in-text": "it is in the middle of a line of text; calls begin a line",
    "unknown-form": "it names a tool, but no format writes calls like this",
    "placeholder": "it lacks its format's markers and its values are placeholders, as in an example",
}
