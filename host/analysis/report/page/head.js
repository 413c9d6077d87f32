// What was run, on what, when; before any figure: how the cases ended, whether they were verified, whether the machine was
// theirs.
function saidList(key, heading) {
  const items = [];
  for (const run of data.runs)
    for (const [who, text] of run[key] || [])
      items.push(element("li", {}, element("b", {}, hasSeveralRuns ? `${run.label}, ${who}: ` : `${who}: `), text));
  if (!items.length) return null;
  return folded(`${heading} (${items.length})`, element("ul", {class: "said"}, items));
}

function judgement(title, counts, details) {
  const row = element("div", {class: "judgement"}, element("h3", {}, title));
  row.append(element("p", {class: "badges"}, counts.length ? counts.map(([word, n]) => badge(word, n)) : "no figures"));
  if (details) row.append(details);
  return row;
}

function failureList() {
  const failed = cases.filter((c) => c.failure);
  if (!failed.length) return null;
  const list = failed.map((c) => {
    const head = element("p", {}, badge(c.status), " ", element("b", {}, c.name), ` (case ${c.case}): `, c.failure.reason);
    const where = c.failure.where.length ? element("p", {class: "quiet"}, "where: " + c.failure.where.join(", ")) : null;
    const log = c.failure.log
      ? element("details", {open: failed.length <= 5}, element("summary", {}, `the last ${plural(c.failure.log.length, "line")} of its log`),
                element("pre", {class: "log"}, c.failure.log.join("\n")))
      : null;
    return element("article", {class: "failure"}, head, where, log);
  });
  return element("section", {id: "failures"}, element("h2", {}, `Not ok: ${plural(failed.length, "case")}`),
                 failed.length > 12 ? [list.slice(0, 12), folded(`${failed.length - 12} others`, list.slice(12))] : list);
}

function factTable(run) {
  const rows = run.facts.map(([key, text]) => element("tr", {}, element("th", {scope: "row"}, key), element("td", {}, text)));
  const table = element("table", {class: "facts"}, element("tbody", {}, rows));
  const same = (run.same || []).map(([key, text]) => element("li", {}, element("code", {}, key), " = ", text));
  return [table, same.length ? folded(`the same in every case: ${plural(same.length, "parameter and setting", "parameters and settings")}`,
                                      element("ul", {class: "same"}, same)) : null];
}

function headSection() {
  const ok = cases.filter((c) => c.status === "ok").length;
  const section = element("header", {id: "head"}, element("h1", {}, data.title));
  section.append(element("p", {class: "quiet"},
    `${plural(data.runs.length, "run")}, ${plural(cases.length, "case")}, ${ok.toLocaleString("en-US")} ok. Report made ${data.made}.`));
  const warnings = data.warnings.map((warning) => element("p", {class: "warning"}, warning));
  section.append(...(warnings.length > 3 ? [folded(plural(warnings.length, "warning"), warnings)] : warnings));
  const judgements = element("div", {class: "judgements"},
    judgement("How the cases ended", tally(cases, (c) => c.status)),
    judgement("Verification", tally(cases, (c) => c.verify), saidList("verification", "what was checked")),
    judgement("Validity of the figures", tally(cases, (c) => c.validity), saidList("validity", "what was seen")));
  section.append(judgements);
  const notes = saidList("notes", "Notes");
  if (notes) section.append(notes);
  return section;
}

function runSection() {
  const section = element("section", {id: "runs"}, element("h2", {}, hasSeveralRuns ? "The runs" : "The run"));
  for (const run of data.runs) {
    const name = run.experiment && run.experiment !== run.name ? `${run.experiment}, ${run.name}` : run.name;
    const title = hasSeveralRuns ? `${run.label}: ${name}` : name;
    const body = [element("p", {class: "quiet"}, element("code", {}, run.path), `, ${plural(run.cases, "case")}`), factTable(run)];
    section.append(data.runs.length > 2 ? folded(title, body) : element("div", {class: "run"}, element("h3", {}, title), body));
  }
  return section;
}
