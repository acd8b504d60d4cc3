// OpenAI's own SDK for JavaScript: its runner of tools, and responses that go on from one another.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.ADAPTER_URL}/v1`, apiKey: "k" });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const about = { name: "get_weather", description: "Of a city.", parameters };
const content = "Weather in Bern and Basel?";
if (process.argv[2] === "chat") {
  const run = (given) => `weather of ${given.city}`;
  const tools = [{ type: "function", function: { ...about, function: run, parse: JSON.parse } }];
  const runner = client.chat.completions.runTools({ model: "m", stream: true, messages: [{ role: "user", content }], tools });
  console.log(await runner.finalContent());
} else {
  const tools = [{ type: "function", ...about, strict: false }];
  const first = await client.responses.create({ model: "m", input: content, tools });
  const input = first.output.filter((item) => item.type === "function_call").map((call) => ({
    type: "function_call_output", call_id: call.call_id, output: `weather of ${JSON.parse(call.arguments).city}`,
  }));
  const last = await client.responses.create({ model: "m", input, tools, previous_response_id: first.id });
  console.log(last.output_text);
}
