const DATA = JSON.parse(document.getElementById("data").textContent);
const MARGIN = 8; // rows beyond those in sight
const at = (id) => document.getElementById(id);
const [rows, space, shown, search, sort, least] = ["rows", "space", "shown", "search", "sort", "least"].map(at);
const chooses = { mark: at("mark"), tool: at("tool"), model: at("model") };
let every = DATA.exchanges;
let found = every;
let chosen = -1; // a place in `found`
let rowHeight = 74; // pixels, as the style sheet has it
let naming = 0;
let whenChosen = show; // told of the exchange that is to be shown
let whenPicked = () => {}; // told that somebody chose
let nothing = "Nothing was said yet.";

// ---------------------------------------------------------------- the list

const elements = new WeakMap(); // of exchanges that were in sight

function row(place) {
  const exchange = found[place];
  const element = elements.get(exchange) || rowOf(exchange);
  element.setAttribute("aria-selected", String(place === chosen));
  element.setAttribute("aria-setsize", String(found.length));
  element.setAttribute("aria-posinset", String(place + 1));
  element.style.top = `${place * rowHeight}px`;
  return element;
}

function rowOf(exchange) {
  const head = [`${exchange.number}`, exchange.time, exchange.model, exchange.cost].filter(Boolean).join(" · ");
  const marks = exchange.marks.filter((mark) => mark !== "calls").map((mark) => chip(mark));
  const called = exchange.calls.map(([name, times]) => times > 1 ? `${name} × ${times.toLocaleString("en")}` : name);
  const element = make("div", "row", make("div", "soft", head), make("div", "", exchange.title || "(nothing said)"),
    make("div", "", ...marks, make("span", "called", called.join(", "))));
  element.id = `row${exchange.number}`;
  element.setAttribute("role", "option");
  element.addEventListener("click", () => pick(found.indexOf(exchange)));
  elements.set(exchange, element);
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
  const isAnother = (element, index) => element !== space.children[index];
  if (drawn.length !== space.childElementCount || drawn.some(isAnother)) space.replaceChildren(...drawn);
  if (chosen >= first && chosen < last) rows.setAttribute("aria-activedescendant", `row${found[chosen].number}`);
  else rows.removeAttribute("aria-activedescendant");
}

function choose(place) {
  chosen = Math.max(0, Math.min(place, found.length - 1));
  const top = chosen * rowHeight;
  if (top < rows.scrollTop) rows.scrollTop = top;
  else if (top + rowHeight > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + rowHeight - rows.clientHeight;
  drawRows();
  if (found.length) whenChosen(found[chosen]);
  else empty(every.length ? "Nothing fits what is searched for." : nothing);
}

function pick(place) {
  whenPicked();
  choose(place);
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

let holds = (exchange, wanted) => words(exchange).includes(wanted);

function fitting() { // what is searched for, in the order that is wanted
  const wanted = search.value.toLowerCase();
  const { mark, tool, model } = chooses;
  const figure = sort.value;
  const bound = figure && figure !== "newest" ? Number(least.value) || 0 : 0;
  const fits = every.filter((exchange) =>
    (!mark.value || exchange.marks.includes(mark.value)) && (!model.value || exchange.model === model.value)
      && (!tool.value || exchange.calls.some(([name]) => name === tool.value))
      && (!bound || exchange.figures[figure] >= bound) && (!wanted || holds(exchange, wanted)));
  if (figure === "newest") return fits.reverse();
  const size = (exchange) => exchange.figures[figure] ?? -1;
  return figure ? fits.sort((one, other) => size(other) - size(one) || one.number - other.number) : fits;
}

function find() {
  const number = found[chosen]?.number;
  found = fitting();
  measure();
  choose(Math.max(0, placeOf(number)));
}

const placeOf = (number) => found.findIndex((exchange) => exchange.number === number);

function measure() {
  space.style.height = `${found.length * rowHeight}px`;
  at("count").textContent = `${found.length} of ${every.length}`;
  least.parentElement.hidden = !sort.value || sort.value === "newest";
}

function offer(select, names) { // those that are there, and how many of each
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const value = select.value;
  if (document.activeElement === select && select.options.length > 1) return; // somebody chooses
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
  const before = DATA.goes_on ? every[exchange.number - 2] : undefined;
  if (!before) return [0, ""];
  const start = exchange.prompt.findIndex((place, number) => before.prompt[number] !== place);
  return [start < 0 ? all.length - 1 : start, " as in the exchange before"];
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
  clearTimeout(naming); // browsers take only so many changes of the address in a while
  naming = setTimeout(() => history.replaceState(null, "", `#${exchange.number}`), 300);
}

function showHead({ number, title, about, marks, notes }) {
  const pair = ([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value));
  head.replaceChildren(make("h2", "", `${number}. ${title || "(nothing said)"}`), make("dl", "", ...about.map(pair)),
    make("p", "", ...marks.filter((mark) => mark !== "calls").map(chip)),
    ...notes.map((note) => make("div", "note", long(note, plain))));
}

function showAnswer(exchange) {
  answered.replaceChildren(readings(exchange.readings), ...(exchange.results.length
    ? [make("h3", "", "Results"), several(make("div"), exchange.results, result, "result")] : []));
}

function empty(words) {
  shown.replaceChildren(make("p", "soft", words));
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
  if (move) pick(chosen + move());
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
const named = Number.parseInt(location.hash.slice(1), 10);
find();
if (named > 1 && named <= every.length) choose(named - 1);
