
// ---------------------------------------------------------------- live: rows come as events, an exchange when it is looked at

const PAUSE = 400; // milliseconds between two looks at an answer that comes
const known = new Map(); // rows, by number
const [follow, connection] = ["follow", "connection"].map(at);
const again = { format: at("format"), policy: at("policy") };
let source = null;
let cursor = "";
let looked = null; // the exchange that is shown, with all that is known of it
let isLooking = false;
let isBehind = false;
let holding = { wanted: "", numbers: new Set() }; // the answers that hold what is searched for
let asking = 0;

function took({ epoch, version, oldest, rows: changed }) {
  if (!cursor.startsWith(`${epoch}.`)) known.clear(); // another server
  cursor = `${epoch}.${version}`;
  for (const exchange of changed) known.set(exchange.number, exchange);
  for (const { number, version } of known.values()) if (version < oldest) known.delete(number);
  every = [...known.values()].sort((one, other) => one.number - other.number);
  offerAll();
  update();
  if (changed.some((exchange) => exchange.is_over)) ask();
}

holds = (exchange, wanted) =>
  words(exchange).includes(wanted) || (holding.wanted === wanted && holding.numbers.has(exchange.number));

function ask() { // which answers hold it: their texts are not here
  clearTimeout(asking);
  const wanted = search.value.toLowerCase();
  if (!wanted) return;
  asking = setTimeout(async () => {
    const answer = await fetch(`found?${new URLSearchParams({ words: wanted })}`).catch(() => null);
    if (!answer?.ok) return;
    holding = { wanted, numbers: new Set((await answer.json()).numbers) };
    find();
  }, 200);
}

function update() { // what is looked at stays where it is, unless the newest is wanted
  const number = found[chosen]?.number ?? named;
  const anchor = rows.scrollTop > 0 ? lines[lineAt(rows.scrollTop)] : undefined;
  measure();
  const moved = anchor && lines.find((line) => idOf(line) === idOf(anchor));
  if (moved) rows.scrollTop += moved.top - anchor.top;
  const place = follow.checked ? placeOf(Math.max(...found.map((each) => each.number))) : placeOf(number);
  if (place >= 0 ? found[place].number !== looked?.number : !looked) {
    choose(place);
    return;
  }
  chosen = place;
  drawRows();
  look();
}

whenChosen = (exchange) => {
  if (looked?.number !== exchange.number) {
    looked = { ...exchange, about: [], notes: [], version: -1 };
    showHead(looked);
    asked.replaceChildren();
    answered.replaceChildren();
  }
  if (!head.isConnected) shown.replaceChildren(head, asked, answered);
  look();
};

async function look() { // at what is chosen, if it has changed; one look at a time
  if (isLooking) { isBehind = true; return; }
  const { number } = looked;
  const row = known.get(number);
  if (!row || looked.version >= row.version) return;
  isLooking = true;
  await fetched(number, looked.prompt && !row.is_over ? { answer: 1 } : {}).catch(() => {}); // the connection says it
  setTimeout(() => { isLooking = false; if (isBehind) { isBehind = false; look(); } }, row.is_over ? 0 : PAUSE);
}

async function fetched(number, query) {
  const wanted = Object.entries({ ...query, format: again.format.value, policy: again.policy.value });
  const search = new URLSearchParams(wanted.filter(([, value]) => value));
  const answer = await fetch(`exchanges/${number}?${search}`);
  const exchange = await answer.json();
  if (looked.number !== number) return;
  if (!answer.ok) {
    looked = { ...looked, version: Infinity, notes: [exchange.error.message] };
    showHead(looked);
    return;
  }
  const isNew = !looked.prompt;
  looked = { ...looked, ...exchange };
  if (isNew) { show(looked); return; }
  const isAtEnd = shown.scrollTop > 0 && shown.scrollTop + shown.clientHeight >= shown.scrollHeight - 40;
  showHead(looked);
  showAnswer(looked);
  if (isAtEnd) shown.scrollTop = shown.scrollHeight;
}

function connect() {
  if (source || document.hidden) return;
  source = new EventSource(`events?since=${cursor}`);
  source.onopen = () => { connection.textContent = ""; };
  source.onmessage = (event) => took(JSON.parse(event.data));
  source.onerror = () => {
    connection.textContent = "The server does not answer; what it said stays here.";
    if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
    source = null;
    setTimeout(retry, 3000);
  };
}

async function retry() {
  const answer = await fetch("rows?since=").catch(() => null);
  if (answer?.status === 401) connection.textContent = "The server is another one now: open its page anew.";
  else connect();
}

document.addEventListener("visibilitychange", () => { // browsers have few connections for a server
  if (!document.hidden) { connect(); return; }
  source?.close();
  source = null;
});
search.addEventListener("input", ask);
whenPicked = () => { follow.checked = false; };
follow.addEventListener("change", update);
for (const select of Object.values(again)) {
  select.addEventListener("change", () => { if (looked) { looked = { ...looked, version: -1, prompt: undefined }; look(); } });
}
follow.checked = !(named > 0);
nothing = "No request with tools has come yet.";
find();
connect();
