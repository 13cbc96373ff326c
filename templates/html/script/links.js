// Links from the numbers of the other sections to the cases that they are made of.

const CASES_OF = [["failed", "failed"], ["worse", "fell"], ["better", "rose"], ["any", "scored"]];
for (const element of document.querySelectorAll("[data-metric]")) {
  const metric = Number(element.dataset.metric);
  const results = rows.flatMap((row) => row.metrics.filter((found) => found[0] === metric));
  for (const [outcome, words] of CASES_OF) {
    const amount = results.filter(OUTCOMES[outcome]).length;
    if (!amount) continue;
    const link = make("a", { text: `${counted(amount, "case")} ${words}` });
    link.href = addressOf({ ...DEFAULTS, kind: "all", metric: index.metrics[metric], outcome: outcome === "failed" ? "" : outcome });
    element.append(link);
  }
}
