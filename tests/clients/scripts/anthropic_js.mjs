// Anthropic's own SDK for JavaScript: its runner of tools.
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { z } from "zod";

const client = new Anthropic({ baseURL: process.env.ADAPTER_URL, apiKey: "k" });
const get_weather = betaZodTool({
  name: "get_weather", description: "Of a city.", inputSchema: z.object({ city: z.string() }),
  run: ({ city }) => `weather of ${city}`,
});
const messages = [{ role: "user", content: "Weather in Bern and Basel?" }];
const last = await client.beta.messages.toolRunner({ model: "m", max_tokens: 999, messages, tools: [get_weather] });
console.log(last.content.find((block) => block.type === "text").text);
