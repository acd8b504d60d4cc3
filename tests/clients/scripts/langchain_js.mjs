// An agent of LangChain for JavaScript, by each of its models.
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOllama } from "@langchain/ollama";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";

const url = process.env.ADAPTER_URL, way = process.argv[2];
const configuration = { baseURL: `${url}/v1` }, apiKey = "k", model = "m";
const models = {
  chat: () => new ChatOpenAI({ model, apiKey, configuration, useResponsesApi: false }),
  responses: () => new ChatOpenAI({ model, apiKey, configuration, useResponsesApi: true }),
  anthropic: () => new ChatAnthropic({ model, apiKey, anthropicApiUrl: url }),
  ollama: () => new ChatOllama({ model, baseUrl: url }),
};
const get_weather = tool(({ city }) => `weather of ${city}`, {
  name: "get_weather", description: "Of a city.", schema: z.object({ city: z.string() }),
});
const agent = createAgent({ model: models[way](), tools: [get_weather] });
const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Weather in Bern and Basel?" }] });
console.log(messages.at(-1).text);
