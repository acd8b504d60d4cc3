// OpenAI's own SDK for JavaScript.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.ADAPTER_URL}/v1`, apiKey: "k", maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const about = { name: "get_weather", description: "Of a city.", parameters };

async function ask(content, stream) {
  if (process.argv[2] === "responses") {
    const given = { model: "m", input: content, tools: [{ type: "function", ...about, strict: false }] };
    const said = stream ? await client.responses.stream(given).finalResponse() : await client.responses.create(given);
    const calls = said.output.filter((item) => item.type === "function_call");
    return {
      text: said.output_text ?? "", finish: said.incomplete_details?.reason ?? said.status,
      calls: calls.map((call) => [call.name, JSON.parse(call.arguments)]),
    };
  }
  const given = { model: "m", messages: [{ role: "user", content }], tools: [{ type: "function", function: about }] };
  const said = stream
    ? await client.chat.completions.stream(given).finalChatCompletion()
    : await client.chat.completions.create(given);
  const { message, finish_reason: finish } = said.choices[0];
  const calls = (message.tool_calls ?? []).map(({ function: call }) => [call.name, JSON.parse(call.arguments)]);
  return { text: message.content ?? "", calls, finish };
}
