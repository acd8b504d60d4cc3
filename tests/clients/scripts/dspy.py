"""DSPy with its own kind of calls, used if litellm reports support; it has no loop for them, so the results are sent in
a second question.
"""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the net for prices
import dspy


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


model = dspy.LM("openai/gpt-4o", api_base=os.environ["ADAPTER_URL"] + "/v1", api_key="k", cache=False)
dspy.configure(lm=model, adapter=dspy.ChatAdapter(use_native_function_calling=True))


class Question(dspy.Signature):
    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


asked = dspy.Predict(Question)(question="Weather in Bern and Basel?", tools=[dspy.Tool(get_weather)])
found = [get_weather(**call.args) for call in asked.calls.tool_calls]
print(model(f"Weather in Bern and Basel? Known: {'; '.join(found)}")[0])
