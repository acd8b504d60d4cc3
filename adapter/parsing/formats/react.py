"""ReAct: ``Action:`` and ``Action Input:`` on separate lines.

Format: the prompt of "ReAct: Synergizing Reasoning and Acting in Language Models" in the wording of LangChain and
Qwen-Agent::

    Thought: I need the file.
    Action: read_file
    Action Input: {"path": "a.py"}
    Observation: ...

The input is the arguments as JSON. The model must stop at ``Observation:``; any later text is invented. Continue's
labels are also parsed; see `continue_block`.
"""

from adapter.parsing.bodies import continue_block
from adapter.parsing.bodies.react_lines import build_labeled_reader
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import CallOpener, Format

OPEN, INPUT, RESULT = "Action:", "Action Input:", "Observation:"

FORMAT = Format(
    name="react",
    openers=(CallOpener(OPEN, build_labeled_reader(INPUT, RESULT)), continue_block.OPENER),
    encode_calls=build_calls_encoder(encode_json_arguments, f"{OPEN} {{name}}\n{INPUT} ", between="\n"),
    encode_result=build_result_encoder(f"{RESULT} "),
    result_markers=("\n" + RESULT,),
    stop_sequences=("\n" + RESULT,),
    template_fingerprints=(INPUT,),
)
