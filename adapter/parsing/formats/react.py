"""ReAct: ``Action:`` and ``Action Input:`` on separate lines.

Format: the prompt of "ReAct: Synergizing Reasoning and Acting in Language Models" in the wording of LangChain and
Qwen-Agent::

    Thought: I need the file.
    Action: read_file
    Action Input: {"path": "a.py"}
    Observation: ...

The input is the arguments as JSON. The model must stop at ``Observation:``; any later text is invented. Models that
were not trained on this format use other labels, such as ``Tool:`` and ``Arguments:``, and bold type. Continue's labels
are also parsed; see `continue_block`.
"""

from collections.abc import Sequence

from adapter.parsing.bodies import continue_block
from adapter.parsing.bodies.react_lines import build_labeled_reader
from adapter.parsing.bodies.worded_call import read_last_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import CallOpener, Format


def _with_bold(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels and their bold forms, with the colon inside or outside."""
    bold = (form for label in labels for form in (f"**{label}**", f"**{label[:-1]}**:"))
    return (*labels, *bold)


LABELS = ("Tool Call:", "Function Call:", "function_call:")
OPEN, INPUT, RESULT = "Action:", "Action Input:", "Observation:"
INPUTS = (INPUT, "Action_Input:", "Arguments:", "Parameters:", "Input:", "Args:")
_read_action = build_labeled_reader(_with_bold(INPUTS), RESULT)

FORMAT = Format(
    name="react",
    openers=(
        *(CallOpener(label, _read_action) for label in _with_bold((OPEN,))),
        *(CallOpener(label, read_last_call) for label in _with_bold(LABELS)),
        continue_block.OPENER,
    ),
    encode_calls=build_calls_encoder(encode_json_arguments, f"{OPEN} {{name}}\n{INPUT} ", between="\n"),
    encode_result=build_result_encoder(f"{RESULT} "),
    result_markers=("\n" + RESULT,),
    stop_sequences=("\n" + RESULT,),
    template_fingerprints=(INPUT,),
)
