
// Runs the parser in this page instead of asking a server.
const started = performance.now();
const python = (async () => {
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const pyodide = await loadPyodide();
  pyodide.unpackArchive(await (await fetch("adapter.zip")).arrayBuffer(), "zip");
  return pyodide.runPython(`
import json
from adapter.recording.view.playground_parser import read_for_page
lambda body: json.dumps(read_for_page(body))
`);
})();
at("summary").textContent = "Loading Python (about 12 MB) …";
python.then(() => { document.body.dataset.loadedMs = Math.round(performance.now() - started); });
ask = async (request) => JSON.parse((await python)(JSON.stringify(request)));
