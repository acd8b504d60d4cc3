"""An agent of OpenHands with its terminal, in an empty folder."""

import os
import tempfile

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the net for prices
from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.tools.terminal import TerminalTool

model = LLM(model="openai/m", base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
with tempfile.TemporaryDirectory() as folder:
    talk = Conversation(Agent(llm=model, tools=[Tool(name=TerminalTool.name)]), workspace=folder, visualizer=None)
    talk.send_message("Weather in Bern and Basel?")
    talk.run()
    print(get_agent_final_response(talk.state.events))
    talk.close()
