"""Real templates of models, where they are beside this folder: what is derived from them reads what they write."""

import pytest

from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from adapter.prompting.deriving.result import derive_format
from benchmarks.derived_formats import is_right, written_by
from tests.prompting.test_shared_templates import FILES, REASON

pytestmark = pytest.mark.skipif(not FILES, reason=REASON)

REFUSED = {
    "HuggingFaceTB-SmolLM3-3B": "leaves past calls out",
    "LFM2-8B-A1B": "leaves past calls out",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "leaves past calls out",
    "google-gemma-2-2b-it": "leaves past calls out",
    "ibm-granite-granite-3.3-2B-Instruct": "leaves past calls out",
    "llama-cpp-rwkv-world": "leaves past calls out",
    "microsoft-Phi-3.5-mini-instruct": "leaves past calls out",
    "Kimi-K2-Instruct": "refuses every conversation",
    "MiroThinker": "refuses every conversation",
    "fireworks-ai-llama-3-firefunction-v2": "cannot be filled",
    "meetkai-functionary-medium-v3.2": "no reader explains",
}
"""Why there is none; FireFunction's wants variables, which only `adapter.backends.template_detection` finds out."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_derived_and_right_or_refused_for_a_reason(file):
    """Of a template that is not in the list nothing is known: it is derived, or says why not."""
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
