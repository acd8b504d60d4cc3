"""Formats derived from real templates, if these are next to the repository, read the templates' output."""

import pytest

from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from adapter.prompting.deriving.derive_format import derive_format
from benchmarks.derived_formats import is_right, written_by
from tests.prompting.test_shared_templates import FILES, REASON

pytestmark = pytest.mark.skipif(not FILES, reason=REASON)

REFUSED = {
    "HuggingFaceTB-SmolLM3-3B": "drops past calls",
    "LFM2-8B-A1B": "drops past calls",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "drops past calls",
    "google-gemma-2-2b-it": "drops past calls",
    "ibm-granite-granite-3.3-2B-Instruct": "drops past calls",
    "llama-cpp-rwkv-world": "drops past calls",
    "microsoft-Phi-3.5-mini-instruct": "drops past calls",
    "Kimi-K2-Instruct": "rejects every conversation",
    "MiroThinker": "rejects every conversation",
    "fireworks-ai-llama-3-firefunction-v2": "cannot be rendered",
    "meetkai-functionary-medium-v3.2": "no parser supports",
}
"""The reason why no format is derived. FireFunction's needs variables, which only `format_derivation` finds."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shared_templates_are_derived_or_rejected_with_a_reason(file):
    """Templates outside the list are derived, or the reason is given."""
    source = file.read_text(encoding="utf-8")
    template = ChatTemplate(source, {"bos_token": "<zqbos>", "eos_token": "<zqeos>"})

    def fill(messages, tools, opened):
        try:
            return render_chat_template(template, messages, tools, add_generation_prompt=opened)
        except ChatTemplateError:
            return None

    found = derive_format(fill, "template_test")
    if found.format is None:
        assert REFUSED.get(file.stem, "") in found.why
        return
    assert file.stem not in REFUSED
    wrong = [
        what for what, content, calls, text in written_by(source) if not is_right(text, found.format, content, calls)
    ]
    assert wrong == []
