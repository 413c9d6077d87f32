// Every case in a table that is sorted by its headers and filtered by a line of text. The plots show the cases that the
// table shows, in its order.
const shownNumber = (text) => (text === "" ? NaN : Number(text.replaceAll(",", "")));

// "status=ok d_model>=512 flash": conditions on columns, and words that stand anywhere in a row. All have to hold.
function conditionOf(word) {
  const parts = /^([^<>=!]+)(<=|>=|!=|=|<|>)(.*)$/.exec(word);
  const columns = [{name: "case"}, ...(hasSeveralRuns ? [{name: "run"}] : []), ...data.columns];
  const place = parts ? columns.findIndex((c) => c.name.toLowerCase() === parts[1].toLowerCase()) : -1;
  if (place < 0) {
    const wanted = word.toLowerCase();
    return {test: (c) => c.text.includes(wanted), known: !parts};
  }
  const [, , relation, value] = parts;
  const wanted = value.toLowerCase(), number = value.trim() === "" ? NaN : Number(value.replaceAll(",", ""));
  const name = columns[place].name, first = columns.length - data.columns.length;
  const cell = (c) => (place >= first ? c.cells[place - first] : name === "case" ? String(c.case) : data.runs[c.run].label);
  const compare = {
    "<": (x) => x < number, ">": (x) => x > number, "<=": (x) => x <= number, ">=": (x) => x >= number,
  };
  const isEqual = (c) => {
    const text = cell(c);
    return text.toLowerCase() === wanted || (!Number.isNaN(number) && shownNumber(text) === number);
  };
  if (relation === "=") return {test: isEqual, known: true};
  if (relation === "!=") return {test: (c) => !isEqual(c), known: true};
  return {test: (c) => compare[relation](shownNumber(cell(c))), known: true};
}

// Cells without a value stay at the end in both directions.
function orderBy(column, direction) {
  const cell = (c) => c.cells[column];
  const byNumber = (a, b) => {
    const x = shownNumber(cell(a)), y = shownNumber(cell(b));
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return direction * (x - y);
  };
  const byText = (a, b) => {
    const x = cell(a), y = cell(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    return direction * x.localeCompare(y, "en", {numeric: true});
  };
  return data.columns[column].number ? byNumber : byText;
}

function tableSection() {
  for (const c of cases) c.text = [`case ${c.case}`, data.runs[c.run].label, ...c.cells].join(" ").toLowerCase();
  const isSame = (k) => cases.length > 1 && cases.every((c) => c.cells[k] === cases[0].cells[k]);
  const shown = data.columns.map((_, k) => k).filter((k) => !isSame(k));
  const same = data.columns.map((_, k) => k).filter((k) => isSame(k) && cases[0].cells[k] !== "");

  const isWide = shown.length > 9;  // on paper its rows are written one below the other
  const headers = shown.map((k) => {
    const button = element("button", {type: "button", on: {click: () => sortBy(k)}}, data.columns[k].name);
    return element("th", {scope: "col", class: data.columns[k].number ? "number" : null, "data-column": data.columns[k].name}, button);
  });
  const byCase = element("th", {scope: "col", class: "first", "data-column": "case"},
                         element("button", {type: "button", on: {click: () => sortBy(-1)}}, "case"));
  const rows = cases.map((c) => {
    const cells = shown.map((k) => element("td", {class: data.columns[k].number ? "number" : null, "data-column": isWide ? data.columns[k].name : null},
                                           c.cells[k] === "" ? [] : c.cells[k]));
    const first = element("th", {scope: "row", class: "first"}, hasSeveralRuns ? `${data.runs[c.run].label} ${c.case}` : String(c.case));
    return element("tr", {class: c.status === "ok" ? null : "failed"}, first, cells);
  });
  const body = element("tbody", {}, rows);
  const count = element("span", {class: "quiet", id: "count", "aria-live": "polite"});
  const filter = element("input", {type: "search", id: "filter", placeholder: "size=small step.mean_ms<10 …", autocomplete: "off",
                                   spellcheck: "false", "aria-label": "show only the cases that hold all of these words and conditions"});
  let order = {column: -1, direction: 1};

  function apply() {
    const conditions = filter.value.split(/\s+/).filter(Boolean).map(conditionOf);
    const kept = cases.filter((c) => conditions.every((condition) => condition.test(c)));
    const sorted = order.column < 0 ? kept : kept.slice().sort(orderBy(order.column, order.direction));
    if (order.column < 0 && order.direction < 0) sorted.reverse();
    body.replaceChildren(...sorted.map((c) => rows[c.id]));
    const unknown = conditions.some((condition) => !condition.known) ? "; there is no column of such a name" : "";
    count.textContent = `${sorted.length.toLocaleString("en-US")} of ${plural(cases.length, "case")}${sorted.length ? "" : unknown}`;
    showCases(sorted);
  }
  function sortBy(column) {
    order = {column, direction: order.column === column ? -order.direction : 1};
    byCase.removeAttribute("aria-sort");
    headers.forEach((header) => header.removeAttribute("aria-sort"));
    const header = column < 0 ? byCase : headers[shown.indexOf(column)];
    header.setAttribute("aria-sort", order.direction > 0 ? "ascending" : "descending");
    apply();
  }
  let waiting = 0;
  filter.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, cases.length > 200 ? 150 : 0);
  });
  body.append(...rows);
  count.textContent = plural(cases.length, "case");
  return element("section", {id: "cases"}, element("h2", {}, "Cases"),
    element("p", {class: "controls"}, filter, " ", count),
    element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "table of the cases"},
            element("table", {id: "table", class: isWide ? "many" : null}, element("thead", {}, element("tr", {}, byCase, headers)), body)),
    same.length ? element("p", {class: "quiet"}, "The same in every row: " +
                          same.map((k) => `${data.columns[k].name} ${cases[0].cells[k]}`).join(", ") + ".") : null,
    element("p", {class: "quiet hint"}, "A header sorts. The line above the table filters by words and conditions (= != < > <= >=); " +
            "the plots show the cases that the table shows, in its order."));
}
