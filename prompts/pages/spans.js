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

function reading({ name, spans }) {
  const piece = (span) =>
    make("div", `span ${span.kind}`, make("div", "kind", span.kind), long(span.text, plain), remarks(span));
  return make("section", "", make("h3", "", name),
    spans.length ? several(make("div"), spans, piece, "piece") : make("p", "soft", "No text came."));
}

const readings = (all) => make("div", all.length > 1 ? "readings" : "readings one", ...all.map(reading));
