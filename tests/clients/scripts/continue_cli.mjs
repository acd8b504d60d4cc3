// Continue's command `cn`, by chat completions, in an empty folder: its own commands print the weather.
import { mkdtempSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";

const home = mkdtempSync(join(tmpdir(), "continue-"));
writeFileSync(join(home, "config.yaml"), process.env.ADAPTER_CONFIG);
const args = ["--config", join(home, "config.yaml"), "--auto", "-p", "Weather in Bern and Basel?"];
const done = spawnSync(join(process.cwd(), "node_modules/.bin/cn"), args, {
  cwd: home, env: { ...process.env, HOME: home, CONTINUE_TELEMETRY_ENABLED: "0" },
  encoding: "utf-8", input: "", timeout: 120000,
});
console.log(done.stdout);
console.error(done.stderr);
process.exitCode = done.status ?? 1;
