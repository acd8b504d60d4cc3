// Ollama's own SDK for JavaScript, streamed.
import { Ollama } from "ollama";

const client = new Ollama({ host: process.env.ADAPTER_URL });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "Of a city.", parameters } }];
const messages = [{ role: "user", content: "Weather in Bern and Basel?" }];
for (;;) {
  const said = { role: "assistant", content: "", tool_calls: [] };
  for await (const part of await client.chat({ model: "m", messages, tools, stream: true })) {
    said.content += part.message.content;
    said.tool_calls.push(...(part.message.tool_calls ?? []));
  }
  messages.push(said);
  if (!said.tool_calls.length) { console.log(said.content); break; }
  for (const { function: { name, arguments: given } } of said.tool_calls) {
    messages.push({ role: "tool", tool_name: name, content: `weather of ${given.city}` });
  }
}
