// OpenAI's framework of agents for JavaScript, streamed.
import { Agent, run, setOpenAIAPI, setDefaultOpenAIClient, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
setOpenAIAPI(process.argv[2] === "chat" ? "chat_completions" : "responses");
setDefaultOpenAIClient(new OpenAI({ baseURL: `${process.env.ADAPTER_URL}/v1`, apiKey: "k" }));
const get_weather = tool({
  name: "get_weather", description: "Of a city.", parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `weather of ${city}`,
});
const agent = new Agent({ name: "a", instructions: "Be brief.", model: "m", tools: [get_weather] });
const said = await run(agent, "Weather in Bern and Basel?", { stream: true });
await said.completed;
console.log(said.finalOutput);
