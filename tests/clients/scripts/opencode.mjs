// opencode, by chat completions, in an empty folder: its own commands print the weather.
import { mkdtempSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";

const home = mkdtempSync(join(tmpdir(), "opencode-"));
writeFileSync(join(home, "opencode.json"), process.env.ADAPTER_CONFIG);
const done = spawnSync(join(process.cwd(), "node_modules/.bin/opencode"), ["run", "Weather in Bern and Basel?"], {
  cwd: home, env: { ...process.env, HOME: home, PWD: home, OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" },
  encoding: "utf-8", input: "", timeout: 120000,
});
console.log(done.stdout);
console.error(done.stderr);
process.exitCode = done.status ?? 1;
