// Vercel's AI SDK, streamed, by each provider; its default is responses, with references to what the server keeps.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const url = process.env.ADAPTER_URL, way = process.argv[2];
const baseURL = `${url}/v1`, apiKey = "k";
const models = {
  responses: () => createOpenAI({ baseURL, apiKey })("m"),
  chat: () => createOpenAI({ baseURL, apiKey }).chat("m"),
  compatible: () => createOpenAICompatible({ name: "a", baseURL, apiKey })("m"),
  anthropic: () => createAnthropic({ baseURL, apiKey })("m"),
};
const get_weather = tool({
  description: "Of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `weather of ${city}`,
});
const said = streamText({
  model: models[way](),
  tools: { get_weather },
  stopWhen: stepCountIs(5),
  prompt: "Weather in Bern and Basel?",
  onError: ({ error }) => { console.error(error); process.exitCode = 1; },
});
console.log(await said.text);
