"use strict";
// What models, tools and people wrote is data: it becomes text nodes, and never markup.
const LONGEST = 20000; // characters of a text that are shown until more are asked for
const MOST = 300; // pieces, messages, remarks likewise

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null));
  return element;
}

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

function reading({ name, spans }) { // the raw text, and beside each piece of it how it was read
  const piece = ({ kind, text, ...span }) => make("div", `span ${kind}`, long(text, plain),
    make("div", "read", make("span", "kind", kind), remarks(span)));
  const titles = make("div", "titles soft", make("span", "", "Raw text"), make("span", "", "Parsed"));
  return make("section", "", make("h3", "", name),
    spans.length ? make("div", "split", titles, several(make("div"), spans, piece, "piece"), divider()) : make("p", "soft", "No text came."));
}

const [LEAST, MIDDLE, MOST_LEFT] = [15, 60, 85]; // percent of the width for the raw text
let split = MIDDLE;

function divider() { // between the raw text and how it was read: to drag, or for the arrow keys
  const element = make("div", "divider");
  element.tabIndex = 0;
  const attributes = { role: "separator", "aria-orientation": "vertical", "aria-label": "Width of the raw text",
    "aria-valuemin": LEAST, "aria-valuemax": MOST_LEFT, "aria-valuenow": Math.round(split) };
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); event.preventDefault(); element.focus(); });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const { left, width } = element.parentElement.getBoundingClientRect();
    divide((100 * (event.clientX - left)) / width);
  });
  element.addEventListener("dblclick", () => divide(MIDDLE));
  element.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 10 : 2;
    const places = { ArrowLeft: split - step, ArrowRight: split + step, Home: LEAST, End: MOST_LEFT };
    if (!(event.key in places)) return;
    event.preventDefault();
    divide(places[event.key]);
  });
  return element;
}

function divide(percent) { // in all that is shown
  split = Math.max(LEAST, Math.min(percent, MOST_LEFT));
  document.documentElement.style.setProperty("--split", `${split}%`);
  for (const each of document.querySelectorAll(".divider")) each.setAttribute("aria-valuenow", Math.round(split));
}

const readings = (all) => make("div", "readings", ...all.map(reading));
