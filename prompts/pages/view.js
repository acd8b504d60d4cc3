
"use strict";
// What models, tools and people wrote is data: it becomes text nodes, and never markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const LONGEST = 20000; // characters of a text that are shown until all are asked for
const MOST = 300; // pieces, messages, remarks likewise
const MARGIN = 8; // rows beyond those in sight
const at = (id) => document.getElementById(id);
const [rows, space, shown, search] = ["rows", "space", "shown", "search"].map(at);
const chooses = { mark: at("mark"), tool: at("tool"), model: at("model") };
const every = DATA.exchanges.map((_, index) => index);
let found = every;
let chosen = -1; // a place in `found`
let rowHeight = 74; // pixels, as the style sheet has it
let naming = 0;

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null));
  return element;
}

// ---------------------------------------------------------------- the list

function row(place) {
  const exchange = DATA.exchanges[found[place]];
  const head = [`${found[place] + 1}`, exchange.time, exchange.model, exchange.cost].filter(Boolean).join(" · ");
  const marks = exchange.marks.filter((mark) => mark !== "calls").map((mark) => chip(mark));
  const element = make("div", "row", make("div", "soft", head), make("div", "", exchange.title || "(nothing said)"),
    make("div", "", ...marks, make("span", "called", exchange.calls.join(", "))));
  element.id = `row${place}`;
  element.setAttribute("role", "option");
  element.setAttribute("aria-selected", String(place === chosen));
  element.setAttribute("aria-setsize", String(found.length));
  element.setAttribute("aria-posinset", String(place + 1));
  element.style.top = `${place * rowHeight}px`;
  element.addEventListener("click", () => choose(place));
  return element;
}

function chip(mark) {
  const kind = DATA.bad.includes(mark) ? "chip bad" : mark === "fixes" ? "chip remark" : "chip";
  return make("span", kind, mark);
}

function drawRows() {
  const first = Math.max(0, Math.floor(rows.scrollTop / rowHeight) - MARGIN);
  const last = Math.min(found.length, Math.ceil((rows.scrollTop + rows.clientHeight) / rowHeight) + MARGIN);
  const drawn = [];
  for (let place = first; place < last; place++) drawn.push(row(place));
  space.replaceChildren(...drawn);
  if (at(`row${chosen}`)) rows.setAttribute("aria-activedescendant", `row${chosen}`);
  else rows.removeAttribute("aria-activedescendant");
}

function choose(place) {
  chosen = Math.max(0, Math.min(place, found.length - 1));
  const top = chosen * rowHeight;
  if (top < rows.scrollTop) rows.scrollTop = top;
  else if (top + rowHeight > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + rowHeight - rows.clientHeight;
  drawRows();
  if (found.length) show(DATA.exchanges[found[chosen]], found[chosen]);
  else shown.replaceChildren(make("p", "soft", "Nothing fits what is searched for."));
}

// ---------------------------------------------------------------- search

function words(exchange) { // what a search looks at, in lower case; made once
  if (exchange.words === undefined) {
    const said = exchange.readings.flatMap((reading) => reading.spans.map((span) => span.text));
    const gave = exchange.results.map((result) => result.text);
    exchange.words = [exchange.time, exchange.model, exchange.title, ...exchange.marks, ...exchange.calls, ...said, ...gave]
      .join("\n").toLowerCase();
  }
  return exchange.words;
}

function find() {
  const before = found[chosen];
  const wanted = search.value.toLowerCase();
  const { mark, tool, model } = chooses;
  found = every.filter((index) => {
    const exchange = DATA.exchanges[index];
    return (!mark.value || exchange.marks.includes(mark.value)) && (!tool.value || exchange.calls.includes(tool.value))
      && (!model.value || exchange.model === model.value) && (!wanted || words(exchange).includes(wanted));
  });
  space.style.height = `${found.length * rowHeight}px`;
  at("count").textContent = `${found.length} of ${every.length}`;
  choose(Math.max(0, found.indexOf(before)));
}

function offer(select, names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  for (const name of [...counts.keys()].filter(Boolean).sort()) {
    const option = make("option", "", `${name} (${counts.get(name)})`);
    option.value = name;
    select.append(option);
  }
  select.parentElement.hidden = counts.size < (select === chooses.model ? 2 : 1);
  select.addEventListener("change", find);
}

// ---------------------------------------------------------------- one exchange

function long(text, fill) { // `fill` puts a text into an element; of a very long one first only its beginning
  const element = make("pre");
  fill(element, text.slice(0, LONGEST));
  const rest = () => { element.replaceChildren(); fill(element, text); };
  return text.length > LONGEST ? make("div", "", element, more(text.length, "character", rest)) : element;
}

function several(box, items, draw, what) { // of very many first only some
  box.append(...items.slice(0, MOST).map(draw));
  const rest = () => { box.replaceChildren(); for (const item of items) box.append(draw(item)); };
  if (items.length > MOST) box.append(make(box.tagName === "UL" ? "li" : "div", "", more(items.length, what, rest)));
  return box;
}

function more(count, what, rest) {
  const button = make("button", "", `Show all ${counted(count, what)}`);
  button.type = "button";
  button.addEventListener("click", () => { button.remove(); rest(); });
  return button;
}

const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

const plain = (element, text) => element.append(/^\s*$/.test(text) ? text.replaceAll("\n", "↵\n") : text);

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

function message(place) {
  const { role, text } = DATA.parts[place];
  if (role === "system" || text.length > 2000) {
    return folded(`${role}, ${counted(text.length, "character")}`, () => long(text, neutralised));
  }
  return make("div", "message", make("div", "soft", role), long(text, neutralised));
}

function prompt(exchange, before) { // what stood in the prompt before, too, is folded
  const isNew = (place, number) => before && before.prompt[number] !== place;
  const start = exchange.prompt.findIndex(isNew);
  const old = before ? exchange.prompt.slice(0, start < 0 ? exchange.prompt.length - 1 : start) : [];
  const news = exchange.prompt.slice(old.length);
  const definition = (place) => folded(DATA.parts[place].role, () => long(DATA.parts[place].text, neutralised));
  const setting = (place) => folded("other fields of the request", () => long(DATA.parts[place].text, plain));
  const fold = (places, draw, what, why) => places.length
    ? [folded(counted(places.length, what) + why, () => several(make("div"), places, draw, what))] : [];
  return [make("h3", "", DATA.prompt), ...fold(exchange.tools, definition, "tool", ""),
    ...fold(old, message, "message", " as in the exchange before"), several(make("div"), news, message, "message"),
    ...exchange.settings.map(setting)];
}

function remarks(span) {
  const fixes = span.fixes.map(([name, why]) => () => make("li", "", make("code", "", name), `: ${why}`));
  const rejected = span.rejected.map(([text, why]) => () =>
    make("li", "wrong", "no call: ", make("code", "", text), ` – ${why}`));
  const list = several(make("ul"), [...fixes, ...rejected], (draw) => draw(), "remark");
  const made = span.call ? make("div", "made", long(span.call, plain)) : null;
  const wrong = span.error ? make("div", "wrong", long(span.error, plain)) : null;
  return made || wrong || list.childElementCount
    ? make("div", "remarks", made, wrong, list.childElementCount ? list : null) : null;
}

function reading({ name, spans }) {
  const piece = (span) =>
    make("div", `span ${span.kind}`, make("div", "kind", span.kind), long(span.text, plain), remarks(span));
  return make("section", "", make("h3", "", name),
    spans.length ? several(make("div"), spans, piece, "piece") : make("p", "soft", "No text came."));
}

function result({ name, ok, text, diffs }) {
  const outcome = ok ? make("span", "ok", "done") : make("span", "failed", "failed");
  return make("div", "message", make("div", "soft", `${name}: `, outcome), long(text, neutralised),
    ...diffs.map((diff) => make("div", "diff", long(diff, asDiff))));
}

function show(exchange, index) {
  const about = make("dl", "", ...exchange.about.map(([name, value]) =>
    make("div", "", make("dt", "", name), make("dd", "", value))));
  const readings = make("div", exchange.readings.length > 1 ? "readings" : "readings one", ...exchange.readings.map(reading));
  const results = exchange.results.length
    ? [make("h3", "", "Results"), several(make("div"), exchange.results, result, "result")] : [];
  shown.replaceChildren(make("h2", "", `${index + 1}. ${exchange.title || "(nothing said)"}`), about,
    make("p", "", ...exchange.marks.filter((mark) => mark !== "calls").map(chip)),
    ...exchange.notes.map((note) => make("div", "note", long(note, plain))),
    ...prompt(exchange, DATA.goes_on ? DATA.exchanges[index - 1] : undefined), readings, ...results);
  shown.scrollTop = 0;
  clearTimeout(naming); // browsers take only so many changes of the address in a while
  naming = setTimeout(() => history.replaceState(null, "", `#${index + 1}`), 300);
}

// ---------------------------------------------------------------- keys

const page = () => Math.max(1, Math.floor(rows.clientHeight / rowHeight));
const moves = { j: () => 1, k: () => -1 };
const inList = { ArrowDown: () => 1, ArrowUp: () => -1, PageDown: page, PageUp: () => -page(), Home: () => -Infinity, End: () => Infinity };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, select");
  if (event.key === "Escape" && isTyping) { rows.focus(); return; }
  if (isTyping) return;
  const move = moves[event.key] || (event.target === rows && inList[event.key]);
  if (!move && event.key !== "/") return;
  event.preventDefault();
  if (move) choose(chosen + move());
  else search.focus();
});
search.addEventListener("input", find);
at("finding").addEventListener("submit", (event) => { event.preventDefault(); rows.focus(); });
let isWaiting = false;
function redraw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; drawRows(); });
}
rows.addEventListener("scroll", redraw, { passive: true });
window.addEventListener("resize", redraw);

offer(chooses.mark, DATA.exchanges.flatMap((exchange) => exchange.marks));
offer(chooses.tool, DATA.exchanges.flatMap((exchange) => [...new Set(exchange.calls)]));
offer(chooses.model, DATA.exchanges.map((exchange) => exchange.model));
rowHeight = 4.6 * parseFloat(getComputedStyle(document.documentElement).fontSize);
const asked = Number.parseInt(location.hash.slice(1), 10) - 1;
find();
if (asked > 0 && asked < every.length) choose(asked);
