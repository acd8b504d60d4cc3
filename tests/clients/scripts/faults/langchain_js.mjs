// LangChain for JavaScript, by each of its clients.
import { tool } from "@langchain/core/tools";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOllama } from "@langchain/ollama";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

const url = process.env.ADAPTER_URL, way = process.argv[2];
const openai = { model: "m", apiKey: "k", maxRetries: 0, configuration: { baseURL: `${url}/v1` } };
const models = {
  chat: () => new ChatOpenAI(openai),
  responses: () => new ChatOpenAI({ ...openai, useResponsesApi: true }),
  anthropic: () => new ChatAnthropic({ model: "m", apiKey: "k", anthropicApiUrl: url, maxTokens: 99, maxRetries: 0 }),
  ollama: () => new ChatOllama({ model: "m", baseUrl: url, maxRetries: 0 }),
};
const get_weather = tool(({ city }) => `weather of ${city}`, {
  name: "get_weather", description: "Of a city.", schema: z.object({ city: z.string() }),
});

async function ask(content, stream) {
  const model = models[way]().bindTools([get_weather]);
  let said;
  if (stream) for await (const chunk of await model.stream(content)) said = said ? said.concat(chunk) : chunk;
  else said = await model.invoke(content);
  const calls = [...(said.tool_calls ?? []), ...(said.invalid_tool_calls ?? [])];
  return { text: said.text ?? "", calls: calls.map(({ name, args }) => [name, args]), finish: null };
}
