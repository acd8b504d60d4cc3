// Anthropic's own SDK for JavaScript.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.ADAPTER_URL, apiKey: "k", maxRetries: 0 });
const input_schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

async function ask(content, stream) {
  const tools = [{ name: "get_weather", description: "Of a city.", input_schema }];
  const given = { model: "m", max_tokens: 99, tools, messages: [{ role: "user", content }] };
  const said = stream ? await client.messages.stream(given).finalMessage() : await client.messages.create(given);
  return {
    text: said.content.filter(({ type }) => type === "text").map(({ text }) => text).join(""),
    calls: said.content.filter(({ type }) => type === "tool_use").map(({ name, input }) => [name, input]),
    finish: said.stop_reason,
  };
}
