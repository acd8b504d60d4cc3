"""Why text that looks like a call was not taken as one: the reasons that a `RejectedCall` can name."""

from __future__ import annotations

REJECTION_REASONS: dict[str, str] = {
    "inline-code": "it stands in inline code",
    "quotation": "it stands in a quoted line",
    "code-fence": "it stands in a code fence with more than the call, or before more text",
    "echoed-result": "it stands in a copy of a tool's result",
    "later-turn": "it comes after the model went on as somebody else",
    "reasoning": "it was drafted in reasoning",
    "no-body": "no call follows the marker",
    "no-markers": "it stands without its format's markers, and the policy asks for them",
    "text-follows": "it stands without its format's markers, and text follows it",
    "unknown-tool": "it stands without its format's markers and names no tool of this session",
    "placeholder": "it stands without its format's markers and its values are placeholders, as in an example",
}
