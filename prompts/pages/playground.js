const DATA = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const FIELDS = ["text", "tools", "format", "template", "policy", "finish_reason"];
const WAIT_MS = 120; // after the last key
const STEP_MS = 40; // between two pieces of a stream
let latest = 0; // number of the newest request
let waiting = 0;
let playing = 0;

const values = () => Object.fromEntries(FIELDS.map((name) => [name, at(name).value]));
const length = () => [...at("text").value].length; // Python counts code points

// Replaced on a page without a server.
let ask = async (request) => {
  const answer = await fetch("read", { method: "POST", body: JSON.stringify(request) });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
};

async function read() {
  const number = ++latest;
  let result;
  try {
    result = await ask({ ...values(), received: Number(at("received").value) });
  } catch (error) {
    result = { error: `The text could not be parsed (${error.message}). Is the playground still running?` };
  }
  if (number === latest) draw(result);
}

function draw({ error, format, badges, spans, held, calls, case: report }) {
  at("summary").className = error ? "wrong" : "";
  if (error) {
    at("summary").textContent = error;
    return;
  }
  const chips = badges.map((badge) => make("span", badge.startsWith("invalid") ? "chip bad" : "chip", badge));
  at("summary").replaceChildren(format && `Format: ${format} `, ...chips);
  const pieces = held ? [...spans, { kind: "held", text: held, call: "", fixes: [], error: "", rejected: [] }] : spans;
  at("spans").replaceChildren(readings([{ name: "As parsed", spans: pieces }]));
  at("calls").textContent = calls;
  at("case_text").textContent = report;
}

function change() { // the whole text is there again
  stop();
  at("template").parentElement.hidden = at("format").value !== "from-template";
  at("received").max = length();
  at("received").value = length();
  count();
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", `#${encode(values())}`);
    read();
  }, WAIT_MS);
}

function count() {
  at("count").textContent = `${at("received").value} of ${at("received").max}`;
}

// ---------------------------------------------------------------- the stream

function stop() {
  clearInterval(playing);
  playing = 0;
  at("play").textContent = "Stream it";
}

function play() {
  if (playing) { stop(); return; }
  const slider = at("received");
  const step = Math.max(1, Math.ceil(slider.max / 100));
  slider.value = 0;
  at("play").textContent = "Stop";
  playing = setInterval(() => {
    slider.value = Number(slider.value) + step;
    if (Number(slider.value) >= Number(slider.max)) stop();
    count();
    read();
  }, STEP_MS);
}

// ---------------------------------------------------------------- links

function encode(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function decode(text) {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0))));
  } catch {
    return null;
  }
}

function fill(state) {
  for (const name of FIELDS) if (typeof state[name] === "string") at(name).value = state[name];
  change();
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    at("copied").textContent = `${what} was copied.`;
  } catch {
    at("copied").textContent = `Copy the ${what.toLowerCase()} by hand.`;
  }
}

DATA.examples.forEach(([name], index) => {
  const option = make("option", "", name);
  option.value = index;
  at("example").append(option);
});
at("example").addEventListener("change", () => {
  const example = DATA.examples[at("example").value];
  if (example) fill({ text: example[1], format: "", tools: DATA.tools });
});
for (const name of FIELDS) at(name).addEventListener("input", change);
at("received").addEventListener("input", () => { stop(); count(); read(); });
at("play").addEventListener("click", play);
at("link").addEventListener("click", () => copy(location.href, "Link"));
at("report").addEventListener("click", () => {
  at("case").hidden = false;
  copy(at("case_text").textContent, "Case");
});
at("input").addEventListener("submit", (event) => event.preventDefault());
fill(decode(location.hash.slice(1)) || { text: DATA.examples[0][1], tools: DATA.tools });
