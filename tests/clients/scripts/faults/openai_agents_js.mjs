// An agent of OpenAI's framework for JavaScript.
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
const client = new OpenAI({ baseURL: `${process.env.ADAPTER_URL}/v1`, apiKey: "k", maxRetries: 0 });

async function ask(content, stream, calls) {
  const Kind = process.argv[2] === "responses" ? OpenAIResponsesModel : OpenAIChatCompletionsModel;
  const get_weather = tool({
    name: "get_weather", description: "Of a city.", parameters: z.object({ city: z.string() }),
    execute: ({ city }) => { calls.push(["get_weather", { city }]); return `weather of ${city}`; },
  });
  const agent = new Agent({ name: "a", instructions: "Be brief.", tools: [get_weather], model: new Kind(client, "m") });
  const said = await new Runner().run(agent, content, { stream });
  if (stream) {
    for await (const _ of said) { /* until it ends */ }
    await said.completed;
  }
  return { text: said.finalOutput ?? "", calls, finish: null };
}
