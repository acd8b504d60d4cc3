// Appended to each JavaScript script: asks for each case, and prints what the client made of it.
process.on("unhandledRejection", () => {});
for (const name of process.argv.slice(3)) {
  const [fault, way] = name.split(":");
  const said = { case: name, error: null, text: "", calls: [], finish: null };
  let timer;
  try {
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("did not end within 30 s")), 30_000);
    });
    const calls = [];
    said.calls = calls;
    const answer = await Promise.race([ask(`Weather in Bern? fault=${fault}`, way === "streamed", calls), late]);
    Object.assign(said, answer);
  } catch (error) {
    said.error = `${error?.constructor?.name}: ${error?.message ?? error} ${error?.responseBody ?? ""}`;
    said.status = error?.status ?? error?.statusCode ?? null;
  }
  clearTimeout(timer);
  console.log(JSON.stringify(said));
}
process.exit(0);
