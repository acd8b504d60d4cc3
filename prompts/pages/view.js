// ---------------------------------------------------------------- keys

const page = () => Math.max(1, Math.floor(rows.clientHeight / (HEIGHTS.row * rem)));
const moves = { j: () => pick(chosen + 1), k: () => pick(chosen - 1) };
const inList = {
  ArrowDown: (line) => go(line + 1), ArrowUp: (line) => go(line - 1), PageDown: (line) => go(line + page()),
  PageUp: (line) => go(line - page()), Home: () => go(0), End: () => go(lines.length - 1),
  ArrowRight: () => { if (focused !== null) fold(focused, true); }, ArrowLeft: leave,
  Enter: toggle, " ": toggle,
};

function toggle() {
  if (focused !== null) fold(focused, !isOpen(focused));
}

function leave(line) { // fold a conversation; from an exchange, go to its head
  if (focused !== null) fold(focused, false);
  else if (lines[line]?.isInside) go(lines.slice(0, line).findLastIndex(({ group }) => group));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, select");
  if (event.key === "Escape" && isTyping) { rows.focus(); return; }
  if (isTyping) return;
  const move = moves[event.key] || (event.target === rows && inList[event.key]);
  if (!move && event.key !== "/") return;
  event.preventDefault();
  if (move) move(activeLine());
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
rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
sort.parentElement.hidden = !DATA.live && !every.some((exchange) => Object.keys(exchange.figures).length);
offerAll();
const named = recall();
find();
if (!DATA.live && placeOf(named) >= 0) choose(placeOf(named));
