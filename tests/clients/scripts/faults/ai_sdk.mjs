// Vercel's AI SDK, by each provider.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";

const url = process.env.ADAPTER_URL, baseURL = `${url}/v1`, apiKey = "k";
const models = {
  responses: () => createOpenAI({ baseURL, apiKey })("m"),
  chat: () => createOpenAI({ baseURL, apiKey }).chat("m"),
  compatible: () => createOpenAICompatible({ name: "a", baseURL, apiKey })("m"),
  anthropic: () => createAnthropic({ baseURL, apiKey })("m"),
};
const tools = { get_weather: tool({ description: "Of a city.", inputSchema: z.object({ city: z.string() }) }) };

async function ask(prompt, stream) {
  const given = { model: models[process.argv[2]](), tools, prompt, maxRetries: 0 };
  let failed = null;
  const said = stream ? streamText({ ...given, onError: ({ error }) => { failed ??= error; } }) : await generateText(given);
  if (stream) await said.consumeStream();
  if (failed) throw failed instanceof Error ? failed : new Error(JSON.stringify(failed));
  const calls = await said.toolCalls;
  return {
    text: await said.text, calls: calls.map(({ toolName, input }) => [toolName, input]), finish: await said.finishReason,
  };
}
