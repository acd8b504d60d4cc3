// ---------------------------------------------------------------- one exchange

function neutralised(element, text) { // every ¤ stands out
  text.split("¤").forEach((piece, number) => element.append(...(number ? [make("mark", "", "¤")] : []), piece));
}

function asDiff(element, text) { // two lines name the file
  const kinds = { "+": "added", "-": "removed", "@": "place" };
  (text.match(/[^\n]*\n|[^\n]+/g) || []).forEach((line, number) =>
    element.append(make("span", number < 2 ? "place" : kinds[line[0]] || "", line)));
}

function folded(summary, inside) { // `inside` makes its element when it is opened
  const element = make("details", "", make("summary", "", summary));
  element.addEventListener("toggle", () => element.append(inside()), { once: true });
  return element;
}

function message({ role, text }) {
  if (role === "system" || text.length > 2000) {
    return folded(`${role}, ${counted(text.length, "character")}`, () => long(text, neutralised));
  }
  return make("div", "message", make("div", "soft", role), long(text, neutralised));
}

function beginning(exchange, all) { // how many of its messages are folded, and why
  if (DATA.live) return [all.findLastIndex(({ role }) => role === "assistant") + 1, " up to the model's last"];
  const before = DATA.goes_on ? previous(exchange) : undefined;
  if (!before) return [0, ""];
  const start = exchange.prompt.findIndex((place, number) => before.prompt[number] !== place);
  return [start < 0 ? all.length - 1 : start, ` as in exchange ${before.number}`];
}

function previous({ number, conversation }) { // in the conversation, or in the recording
  for (let index = number - 2; index >= 0; index--) if (every[index].conversation === conversation) return every[index];
  return every[number - 2];
}

function prompt(exchange) {
  const parts = exchange.parts || DATA.parts;
  const all = exchange.prompt.map((place) => parts[place]);
  const [start, why] = beginning(exchange, all);
  const definition = ({ role, text }) => folded(role, () => long(text, neutralised));
  const setting = (place) => folded("other fields of the request", () => long(parts[place].text, plain));
  const fold = (items, draw, what, why) => items.length
    ? [folded(counted(items.length, what) + why, () => several(make("div"), items, draw, what))] : [];
  return [make("h3", "", DATA.prompt), ...fold(exchange.tools.map((place) => parts[place]), definition, "tool", ""),
    ...fold(all.slice(0, start), message, "message", why),
    several(make("div"), all.slice(start), message, "message"), ...exchange.settings.map(setting)];
}

function result({ name, ok, text, diffs }) {
  const outcome = ok ? make("span", "ok", "done") : make("span", "failed", "failed");
  return make("div", "message", make("div", "soft", `${name}: `, outcome), long(text, neutralised),
    ...diffs.map((diff) => make("div", "diff", long(diff, asDiff))));
}

const [head, asked, answered] = ["div", "div", "div"].map((tag) => make(tag));

function show(exchange) {
  showHead(exchange);
  asked.replaceChildren(...prompt(exchange));
  showAnswer(exchange);
  shown.replaceChildren(head, asked, answered);
  shown.scrollTop = 0;
  remember();
}

function showHead({ number, title, about, marks, notes, timeline }) {
  const pair = ([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value));
  head.replaceChildren(...[make("h2", "", `${number}. ${title || "(nothing said)"}`), make("dl", "", ...about.map(pair)), timeOf(timeline || []),
    make("p", "", ...marks.filter((mark) => mark !== "calls").map(chip)),
    ...notes.map((note) => make("div", "note", long(note, plain)))].filter(Boolean));
}

function timeOf(phases) { // a bar for each phase
  if (!phases.length) return null;
  const whole = phases.at(-1).end_s || 1;
  const phase = ({ kind, name, start_s, end_s }) => {
    const bar = make("span", `bar ${kind}`);
    bar.style.left = `${(100 * start_s) / whole}%`;
    bar.style.width = `${(100 * (end_s - start_s)) / whole}%`;
    return make("li", "", make("span", "phase", name), make("span", "track", bar),
      make("span", "seconds", `${start_s.toFixed(2)} to ${end_s.toFixed(2)} s`));
  };
  const list = make("ol", "timeline", ...phases.map(phase));
  list.setAttribute("aria-label", "Timeline");
  return list;
}

function showAnswer(exchange) {
  answered.replaceChildren(readings(exchange.readings), ...(exchange.results.length
    ? [make("h3", "", "Results"), several(make("div"), exchange.results, result, "result")] : []));
}

function empty(words) {
  shown.replaceChildren(make("p", "soft", words));
}

