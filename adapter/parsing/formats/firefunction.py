"""FireFunction v2: ``functools[{"name": N, "arguments": {...}}, ...]``, as Phi-4-mini writes it.

Format: the chat template of fireworks-ai/llama-3-firefunction-v2, which writes a space between an answer and the word
``functools``. Results are returned under the ``tool`` role.
"""

from dataclasses import replace

from adapter.parsing.call_encoders import encode_content_alone
from adapter.parsing.format import CallOpener
from adapter.parsing.formats import phi4_mini_json
from adapter.parsing.formats.phi4_mini_json import WORD, read_functools

FORMAT = replace(
    phi4_mini_json.FORMAT,
    name="firefunction",
    aliases=("firefunction_v2",),
    openers=(CallOpener(WORD, read_functools),),
    encode_result=encode_content_alone,
    stray_closers=(),
    end_tokens=(),
    other_role_markers=(),
    result_markers=(),
    stop_sequences=("<|eot_id|>",),
    special_tokens=(),
    model_patterns=(r"firefunction",),
    template_fingerprints=("prefix function calls with functools marker",),
)
