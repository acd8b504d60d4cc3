const DATA = JSON.parse(document.getElementById("data").textContent);
const MARGIN = 600; // pixels of the list that are drawn beyond those in sight
const HEIGHTS = { group: 3.2, row: 4.6, asked: 5.9 }; // rem, as in the style sheet
const at = (id) => document.getElementById(id);
const [rows, space, shown, search, sort, least] = ["rows", "space", "shown", "search", "sort", "least"].map(at);
const chooses = { mark: at("mark"), tool: at("tool"), model: at("model") };
const fields = { search, ...chooses, sort, least }; // what the address holds
const folds = new Map(); // conversations that somebody folded or opened: whether they are open
let every = DATA.exchanges;
let found = every; // in the order of the list
let lines = []; // of the list: a conversation's head, or an exchange
let chosen = -1; // an index of `found`
let focused = null; // the head of a conversation, if it is the active line of the list
let rem = 16;
let naming = 0;
let whenChosen = show; // told of the exchange that is to be shown
let whenPicked = () => {}; // told that somebody chose
let nothing = "Nothing was said yet.";

// ---------------------------------------------------------------- conversations

function arrange(fitting) { // exchanges of a conversation come together, unless they are sorted by a figure
  const groups = new Map();
  for (const exchange of fitting) {
    const group = groups.get(exchange.conversation);
    if (group) group.exchanges.push(exchange);
    else groups.set(exchange.conversation, { key: exchange.conversation, exchanges: [exchange] });
  }
  const isFlat = groups.size < 2 || !["", "newest"].includes(sort.value);
  found = isFlat ? fitting : [...groups.values()].flatMap(({ exchanges }) => exchanges);
  return isFlat ? found.map((exchange) => ({ exchanges: [exchange] })) : [...groups.values()];
}

let groups = [];
const isOpen = (key) => folds.get(key) ?? search.value !== "";

function layOut() {
  lines = [];
  let top = 0;
  let place = 0;
  let before = null; // the exchange above
  const add = (line, kind) => {
    lines.push({ ...line, top, height: HEIGHTS[kind] * rem });
    top += HEIGHTS[kind] * rem;
  };
  for (const group of groups) {
    const isFolder = group.exchanges.length > 1;
    const isHidden = isFolder && !isOpen(group.key);
    if (isFolder) {
      add({ group }, "group");
      before = firstOf(group);
    }
    for (const exchange of group.exchanges) {
      const asks = exchange.question !== "" && !(before?.conversation === exchange.conversation && before.question === exchange.question);
      if (!isHidden) add({ exchange, place, asks, isInside: isFolder }, asks ? "asked" : "row");
      before = exchange;
      place++;
    }
  }
  space.style.height = `${top}px`;
}

const firstOf = ({ exchanges }) => exchanges.reduce((first, each) => (each.number < first.number ? each : first));

function lineAt(top) { // the index of the line at a height
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].top + lines[middle].height <= top) low = middle + 1;
    else high = middle;
  }
  return low;
}

const idOf = ({ group, exchange }) => (group ? `group${group.key}` : `row${exchange.number}`);

function activeLine() { // its index; -1 if it is folded away
  if (focused !== null) return lines.findIndex(({ group }) => group?.key === focused);
  return lines.findIndex(({ exchange, place }) => exchange && place === chosen);
}

function fold(key, opens) {
  folds.set(key, opens);
  layOut();
  drawRows();
}

// ---------------------------------------------------------------- the list

const elements = new WeakMap(); // of exchanges that were in sight

function draw(line) {
  const element = line.group ? headOf(line.group) : elements.get(line.exchange) || rowOf(line.exchange);
  const isActive = line.group ? line.group.key === focused : line.place === chosen;
  element.setAttribute("aria-selected", String(isActive));
  element.classList.toggle("inside", Boolean(line.isInside));
  if (line.exchange) {
    element.children[1].hidden = !line.asks;
    element.setAttribute("aria-level", line.isInside ? "2" : "1");
    element.setAttribute("aria-setsize", String(found.length));
    element.setAttribute("aria-posinset", String(line.place + 1));
  }
  element.style.top = `${line.top}px`;
  element.style.height = `${line.height}px`;
  return element;
}

const heads = new Map(); // of conversations that were in sight

function headOf(group) {
  const element = heads.get(group.key) || newHead(group.key);
  if (element.group !== group) { // it has other exchanges now
    const { exchanges } = group;
    const bad = new Set(exchanges.flatMap(({ marks }) => marks).filter((mark) => DATA.bad.includes(mark)));
    const count = `${counted(exchanges.length, "exchange")} from ${firstOf(group).number} `;
    element.replaceChildren(make("div", "question", firstOf(group).question || "(no question)"),
      make("div", "", make("span", "soft", count), ...[...bad].map(chip)));
    element.group = group;
  }
  element.setAttribute("aria-expanded", String(isOpen(group.key)));
  return element;
}

function newHead(key) {
  const element = make("div", "group");
  element.id = `group${key}`;
  element.setAttribute("role", "treeitem");
  element.setAttribute("aria-level", "1");
  element.addEventListener("click", () => { focused = key; fold(key, !isOpen(key)); });
  heads.set(key, element);
  return element;
}

function rowOf(exchange) {
  const head = [`${exchange.number}`, exchange.time, exchange.model, exchange.cost].filter(Boolean).join(" · ");
  const marks = exchange.marks.filter((mark) => mark !== "calls").map((mark) => chip(mark));
  const called = exchange.calls.map(([name, times]) => times > 1 ? `${name} × ${times.toLocaleString("en")}` : name);
  const element = make("div", "row", make("div", "soft", head), make("div", "question", exchange.question),
    make("div", "title", exchange.title || "(nothing said)"),
    make("div", "", ...marks, make("span", "called", called.join(", "))));
  element.id = `row${exchange.number}`;
  element.setAttribute("role", "treeitem");
  element.addEventListener("click", () => pick(found.indexOf(exchange)));
  elements.set(exchange, element);
  return element;
}

function chip(mark) {
  const kind = DATA.bad.includes(mark) ? "chip bad" : ["fixes", "waiting", "writing"].includes(mark) ? "chip remark" : "chip";
  return make("span", kind, mark);
}

function drawRows() {
  const first = lineAt(rows.scrollTop - MARGIN);
  const last = Math.min(lines.length, lineAt(rows.scrollTop + rows.clientHeight + MARGIN) + 1);
  const drawn = lines.slice(first, last).map(draw);
  const isAnother = (element, index) => element !== space.children[index];
  if (drawn.length !== space.childElementCount || drawn.some(isAnother)) space.replaceChildren(...drawn);
  const active = activeLine();
  if (active >= first && active < last) rows.setAttribute("aria-activedescendant", idOf(lines[active]));
  else rows.removeAttribute("aria-activedescendant");
}

function scrollTo({ top, height }) {
  if (top < rows.scrollTop) rows.scrollTop = top;
  else if (top + height > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + height - rows.clientHeight;
}

function choose(place) {
  chosen = Math.max(0, Math.min(place, found.length - 1));
  focused = null;
  if (found.length && activeLine() < 0) { // in a folded conversation
    folds.set(found[chosen].conversation, true);
    layOut();
  }
  if (found.length) scrollTo(lines[activeLine()]);
  drawRows();
  if (found.length) whenChosen(found[chosen]);
  else empty(every.length ? "Nothing fits what is searched for." : nothing);
}

function pick(place) {
  whenPicked();
  choose(place);
}

function go(index) { // to a line, which can be the head of a conversation
  const line = lines[Math.max(0, Math.min(index, lines.length - 1))];
  if (!line) return;
  if (line.exchange) { pick(line.place); return; }
  focused = line.group.key;
  scrollTo(line);
  drawRows();
}

// ---------------------------------------------------------------- search

function words(exchange) { // what a search looks at, in lower case; made once
  if (exchange.words === undefined) {
    const said = (exchange.readings || []).flatMap((reading) => reading.spans.map((span) => span.text));
    const gave = (exchange.results || []).map((result) => result.text);
    const called = exchange.calls.map(([name]) => name);
    const row = [exchange.time, exchange.model, exchange.question, exchange.title, ...exchange.marks];
    exchange.words = [...row, ...called, ...said, ...gave].join("\n").toLowerCase();
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
  measure();
  choose(Math.max(0, placeOf(number)));
  remember();
}

const placeOf = (number) => found.findIndex((exchange) => exchange.number === number);

function measure() {
  groups = arrange(fitting());
  layOut();
  at("count").textContent = `${found.length} of ${every.length}`;
  least.parentElement.hidden = !sort.value || sort.value === "newest";
}

function offer(select, names) { // those that are there, and how many of each
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const value = select.value;
  if (document.activeElement === select && select.options.length > 1) return; // somebody chooses
  const options = [...counts.keys()].filter(Boolean).sort().map((name) => optionOf(name, counts.get(name)));
  select.replaceChildren(select.options[0], ...options);
  if (value && !counts.has(value)) select.append(optionOf(value, 0)); // it may come back
  select.value = value;
  select.parentElement.hidden = select.options.length < (select === chooses.model ? 3 : 2);
}

function optionOf(name, count) {
  const option = make("option", "", `${name} (${count})`);
  option.value = name;
  return option;
}

function offerAll() {
  offer(chooses.mark, every.flatMap((exchange) => exchange.marks));
  offer(chooses.tool, every.flatMap((exchange) => exchange.calls.map(([name]) => name)));
  offer(chooses.model, every.map((exchange) => exchange.model));
}

// ---------------------------------------------------------------- the address: #NUMBER&search=WORDS&mark=NAME...

if (DATA.live) sort.value = "newest";
const preset = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));

function remember() {
  clearTimeout(naming); // browsers take only so many changes of the address in a while
  naming = setTimeout(() => {
    const set = Object.entries(fields).filter(([name, field]) => field.value !== preset[name]);
    const query = new URLSearchParams(set.map(([name, field]) => [name, field.value])).toString();
    history.replaceState(null, "", `#${found[chosen]?.number ?? ""}${query && `&${query}`}`);
  }, 300);
}

function recall() { // returns the number of the exchange
  const [number, ...query] = location.hash.slice(1).split("&");
  const values = new URLSearchParams(query.join("&"));
  for (const [name, field] of Object.entries(fields)) {
    const value = values.get(name) ?? preset[name];
    if (name in chooses && value && ![...field.options].some((option) => option.value === value)) field.append(optionOf(value, 0));
    field.value = value;
  }
  return Number.parseInt(number, 10);
}

window.addEventListener("hashchange", () => {
  const number = recall();
  find();
  if (placeOf(number) >= 0) pick(placeOf(number));
});
