// An agent of Strands for JavaScript, streamed. By chat completions it keeps the last of several calls alone, since it
// ends them all after the last one; the model asks the other again.
import { Agent, tool } from "@strands-agents/sdk";
import { OpenAIModel } from "@strands-agents/sdk/models/openai";
import { z } from "zod";

const get_weather = tool({
  name: "get_weather", description: "Of a city.", inputSchema: z.object({ city: z.string() }),
  callback: ({ city }) => `weather of ${city}`,
});
const model = new OpenAIModel({
  api: process.argv[2], modelId: "m", apiKey: "k", clientConfig: { baseURL: `${process.env.ADAPTER_URL}/v1` },
});
const said = await new Agent({ model, tools: [get_weather], printer: false }).invoke("Weather in Bern and Basel?");
console.log(said.toString());
