// Ollama's own SDK for JavaScript.
import { Ollama } from "ollama";

const client = new Ollama({ host: process.env.ADAPTER_URL });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "Of a city.", parameters } }];

async function ask(content, stream) {
  const given = { model: "m", messages: [{ role: "user", content }], tools };
  const parts = [];
  if (stream) for await (const part of await client.chat({ ...given, stream })) parts.push(part);
  else parts.push(await client.chat(given));
  const calls = parts.flatMap(({ message }) => message.tool_calls ?? []);
  return {
    text: parts.map(({ message }) => message.content).join(""),
    calls: calls.map((call) => [call.function.name, call.function.arguments]),
    finish: parts.at(-1).done_reason,
  };
}
