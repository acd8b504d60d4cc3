// An agent of Mastra, streamed, with the address of its model.
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const get_weather = createTool({
  id: "get_weather", description: "Of a city.", inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `weather of ${city}`,
});
const model = { id: "adapter/m", url: `${process.env.ADAPTER_URL}/v1`, apiKey: "k" };
const agent = new Agent({ id: "a", name: "a", instructions: "Be brief.", model, tools: { get_weather } });
const said = await agent.stream("Weather in Bern and Basel?");
console.log(await said.text);
