
"use strict";
// What models, tools and people wrote is data: it becomes text nodes, and never markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const LONGEST = 20000; // characters of a text that are shown until more are asked for
const MOST = 300; // pieces, messages, remarks likewise
const MARGIN = 8; // rows beyond those in sight
const at = (id) => document.getElementById(id);
const [rows, space, shown, search, sort, least] = ["rows", "space", "shown", "search", "sort", "least"].map(at);
const chooses = { mark: at("mark"), tool: at("tool"), model: at("model") };
let every = DATA.exchanges;
let found = every;
let chosen = -1; // a place in `found`
let rowHeight = 74; // pixels, as the style sheet has it
let naming = 0;
let whenChosen = () => {}; // told of the exchange that is shown

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null));
  return element;
}

// ---------------------------------------------------------------- the list

function row(place) {
  const exchange = found[place];
  const head = [`${exchange.number}`, exchange.time, exchange.model, exchange.cost].filter(Boolean).join(" · ");
  const marks = exchange.marks.filter((mark) => mark !== "calls").map((mark) => chip(mark));
  const called = exchange.calls.map(([name, times]) => times > 1 ? `${name} × ${times.toLocaleString("en")}` : name);
  const element = make("div", "row", make("div", "soft", head), make("div", "", exchange.title || "(nothing said)"),
    make("div", "", ...marks, make("span", "called", called.join(", "))));
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
  const kind = DATA.bad.includes(mark) ? "chip bad" : ["fixes", "waiting", "writing"].includes(mark) ? "chip remark" : "chip";
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
  if (found.length) show(found[chosen]);
  else shown.replaceChildren(make("p", "soft", every.length ? "Nothing fits what is searched for." : "Nothing was said yet."));
  whenChosen(found[chosen]);
}

// ---------------------------------------------------------------- search

function words(exchange) { // what a search looks at, in lower case; made once
  if (exchange.words === undefined) {
    const said = (exchange.readings || []).flatMap((reading) => reading.spans.map((span) => span.text));
    const gave = (exchange.results || []).map((result) => result.text);
    const called = exchange.calls.map(([name]) => name);
    exchange.words = [exchange.time, exchange.model, exchange.title, ...exchange.marks, ...called, ...said, ...gave]
      .join("\n").toLowerCase();
  }
  return exchange.words;
}

function fitting() { // what is searched for, in the order that is wanted
  const wanted = search.value.toLowerCase();
  const { mark, tool, model } = chooses;
  const figure = sort.value;
  const bound = figure && figure !== "newest" ? Number(least.value) || 0 : 0;
  const fits = every.filter((exchange) =>
    (!mark.value || exchange.marks.includes(mark.value)) && (!model.value || exchange.model === model.value)
      && (!tool.value || exchange.calls.some(([name]) => name === tool.value))
      && (!bound || exchange.figures[figure] >= bound) && (!wanted || words(exchange).includes(wanted)));
  if (figure === "newest") return fits.reverse();
  const size = (exchange) => exchange.figures[figure] ?? -1;
  return figure ? fits.sort((one, other) => size(other) - size(one) || one.number - other.number) : fits;
}

function find() {
  const before = found[chosen];
  found = fitting();
  measure();
  choose(Math.max(0, found.indexOf(before)));
}

function measure() {
  space.style.height = `${found.length * rowHeight}px`;
  at("count").textContent = `${found.length} of ${every.length}`;
  least.parentElement.hidden = !sort.value || sort.value === "newest";
}

function offer(select, names) { // those that are there, and how many of each
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const value = select.value;
  const options = [...counts.keys()].filter(Boolean).sort().map((name) => {
    const option = make("option", "", `${name} (${counts.get(name)})`);
    option.value = name;
    return option;
  });
  select.replaceChildren(select.options[0], ...options);
  if (value && !counts.has(value)) { // it may come back
    const option = make("option", "", `${value} (0)`);
    option.value = value;
    select.append(option);
  }
  select.value = value;
  select.parentElement.hidden = select.options.length < (select === chooses.model ? 3 : 2);
}

function offerAll() {
  offer(chooses.mark, every.flatMap((exchange) => exchange.marks));
  offer(chooses.tool, every.flatMap((exchange) => exchange.calls.map(([name]) => name)));
  offer(chooses.model, every.map((exchange) => exchange.model));
}

// ---------------------------------------------------------------- one exchange

function long(text, fill) { // `fill` puts a text into an element; of a very long one first only its beginning
  const element = make("pre");
  fill(element, text.slice(0, LONGEST));
  const rest = () => { element.replaceChildren(); fill(element, text); };
  return text.length > LONGEST ? make("div", "", element, more(`Show all ${counted(text.length, "character")}`, rest)) : element;
}

function several(box, items, draw, what) { // of very many so many at a time
  box.append(...items.slice(0, MOST).map(draw));
  const rest = items.slice(MOST);
  if (rest.length) {
    const add = () => { button.remove(); several(box, rest, draw, what); };
    const button = make(box.tagName === "UL" ? "li" : "div", "", more(`Show more of ${counted(rest.length, what)}`, add));
    box.append(button);
  }
  return box;
}

function more(words, rest) {
  const button = make("button", "", words);
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

function message({ role, text }) {
  if (role === "system" || text.length > 2000) {
    return folded(`${role}, ${counted(text.length, "character")}`, () => long(text, neutralised));
  }
  return make("div", "message", make("div", "soft", role), long(text, neutralised));
}

function prompt(exchange, before) { // what stood in the prompt before, too, is folded
  const parts = exchange.parts || DATA.parts;
  const isNew = (place, number) => before && before.prompt[number] !== place;
  const start = exchange.prompt.findIndex(isNew);
  const all = exchange.prompt.map((place) => parts[place]);
  const old = before ? all.slice(0, start < 0 ? all.length - 1 : start) : [];
  const definition = ({ role, text }) => folded(role, () => long(text, neutralised));
  const setting = (place) => folded("other fields of the request", () => long(parts[place].text, plain));
  const fold = (items, draw, what, why) => items.length
    ? [folded(counted(items.length, what) + why, () => several(make("div"), items, draw, what))] : [];
  return [make("h3", "", DATA.prompt), ...fold(exchange.tools.map((place) => parts[place]), definition, "tool", ""),
    ...fold(old, message, "message", " as in the exchange before"),
    several(make("div"), all.slice(old.length), message, "message"), ...exchange.settings.map(setting)];
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

const readings = (all) => make("div", all.length > 1 ? "readings" : "readings one", ...all.map(reading));

function result({ name, ok, text, diffs }) {
  const outcome = ok ? make("span", "ok", "done") : make("span", "failed", "failed");
  return make("div", "message", make("div", "soft", `${name}: `, outcome), long(text, neutralised),
    ...diffs.map((diff) => make("div", "diff", long(diff, asDiff))));
}

function show(exchange) {
  const { number } = exchange;
  const about = make("dl", "", ...(exchange.about || []).map(([name, value]) =>
    make("div", "", make("dt", "", name), make("dd", "", value))));
  const head = [make("h2", "", `${number}. ${exchange.title || "(nothing said)"}`), about,
    make("p", "", ...exchange.marks.filter((mark) => mark !== "calls").map(chip))];
  const before = DATA.goes_on ? every[number - 2] : undefined;
  const inside = exchange.readings === undefined ? [] : [
    ...exchange.notes.map((note) => make("div", "note", long(note, plain))),
    ...prompt(exchange, before), readings(exchange.readings),
    ...(exchange.results.length
      ? [make("h3", "", "Results"), several(make("div"), exchange.results, result, "result")] : [])];
  shown.replaceChildren(...head, ...inside);
  shown.scrollTop = 0;
  clearTimeout(naming); // browsers take only so many changes of the address in a while
  naming = setTimeout(() => history.replaceState(null, "", `#${number}`), 300);
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
for (const field of [search, least]) field.addEventListener("input", find);
for (const select of [sort, ...Object.values(chooses)]) select.addEventListener("change", find);
at("finding").addEventListener("submit", (event) => { event.preventDefault(); rows.focus(); });
let isWaiting = false;
function redraw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; drawRows(); });
}
rows.addEventListener("scroll", redraw, { passive: true });
window.addEventListener("resize", redraw);

every.forEach((exchange, index) => { exchange.number = index + 1; });
offerAll();
rowHeight = 4.6 * parseFloat(getComputedStyle(document.documentElement).fontSize);
sort.parentElement.hidden = !DATA.live && !every.some((exchange) => Object.keys(exchange.figures).length);
const asked = Number.parseInt(location.hash.slice(1), 10) - 1;
find();
if (asked > 0 && asked < every.length) choose(asked);
