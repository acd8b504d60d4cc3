// The official conformance suite of MCP; it asks for a newer node than many have, which comes as a package.
import { spawnSync } from "node:child_process";

const suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const args = [suite, "server", "--url", `${process.env.ADAPTER_URL}/mcp`, "--scenario", process.argv[2]];
const done = spawnSync("node_modules/node/bin/node", args, { encoding: "utf-8", timeout: 120000 });
console.log(done.stdout, done.stderr);
process.exitCode = done.status ?? 1;
