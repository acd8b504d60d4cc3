// OpenAI's codex, by responses, in an empty folder: its own commands print the weather.
import { mkdtempSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";

const home = mkdtempSync(join(tmpdir(), "codex-"));
writeFileSync(join(home, "config.toml"), process.env.ADAPTER_CONFIG);
const args = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Weather in Bern and Basel?"];
const done = spawnSync(join(process.cwd(), "node_modules/.bin/codex"), args, {
  cwd: home, env: { ...process.env, CODEX_HOME: home, ADAPTER_API_KEY: "none" }, encoding: "utf-8", input: "",
  timeout: 120000,
});
console.log(done.stdout);
console.error(done.stderr);
process.exitCode = done.status ?? 1;
