"""Folders of published figures: records, the tables of them, and a README, as make_published_reports.py writes them."""

import json
import textwrap


class Source:
    """One folder: a document's figures from one machine."""

    def __init__(self, folder, document, device, about, *remarks):
        """`remarks`: lines of the folder's README, on what its figures mean."""
        self.folder, self.document, self.device, self.about, self.remarks = folder, document, device, about, remarks
        self.tables = {}

    def add(self, table, workload, axes, params=None, phases=None, *, status="ok", reason="", ranks=1, settings=None,
            n=None, items=None, metrics=None, memory=None, device=None, shares=None, assumed=None, notes=()):
        """`phases`: name -> mean or (mean, std), in ms. `shares`: of the step, by phase. `items`: (count, unit).
        `assumed`: parameters, settings (they have a dot) and the device, which the document does not say."""
        assumed = dict(assumed or {})
        records = self.tables.setdefault(table, [])
        device = dict(self.device if device is None else device)
        if "device" in assumed:
            device["kind"] = assumed["device"]
        given = {**axes, **(params or {}), **(settings or {}), **{k: v for k, v in assumed.items() if k != "device"}}
        if assumed:
            notes = [f"assumed: {', '.join(f'{key} = {text_of(value)}' for key, value in assumed.items())}", *notes]
        # No JSON number for a value that a document leaves out.
        record = {"schema": 1, "index": len(records), "hash": "", "axes": axes, "status": status, "reason": reason,
                  "stage": "done" if status == "ok" else "", "phase": "", "rank": None, "ranks": ranks,
                  "workload": workload, "device": device,
                  "params": {k: v for k, v in given.items() if "." not in k},
                  "settings": {k: v for k, v in given.items() if "." in k},
                  "metrics": {name: {"value": value, "unit": unit, "direction": direction}
                              for name, (value, unit, direction) in (metrics or {}).items()},
                  "step_metrics": {}, "phases": {}, "verify": {"status": "not checked", "text": ""},
                  "notes": [f"published: {self.document}", *notes]}
        for name, figures in (phases or {}).items():
            mean, std = figures if isinstance(figures, tuple) else (figures, None)
            phase = {"mean_ms": mean}
            if std is not None:
                phase["std_ms"] = std
                if mean > 0:  # a difference of two means may not be
                    phase["cv"] = std / mean
            if n is not None:
                phase["n"] = n
            if name in (shares or {}):
                phase["share"] = shares[name]
            record["phases"][name] = phase
        if items and "step" in record["phases"]:
            record["work"] = {"items": items[0], "item_unit": items[1]}
            record["rates"] = {"items_per_s": items[0] * ranks * 1e3 / record["phases"]["step"]["mean_ms"]}
        if memory:
            record["memory"] = memory
        records.append(record)

    def write(self, root):
        for table, records in self.tables.items():
            folder = root / self.folder / table
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cases.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records))
            (folder / "table.md").write_text(table_of(records))
        paragraphs = [f"Source: {self.document}. Written by `scripts/make_published_reports.py`.",
                      "The records have the format of docs/record.md, without samples. What the document does not say "
                      "is absent, or stands in a note that begins with `assumed: `, which `assay compare` shows. Its "
                      "verdicts on these records are made from means and standard deviations."]
        lines = [f"# {self.about}", ""]
        for paragraph in paragraphs:
            lines += [textwrap.fill(paragraph, 120, break_on_hyphens=False), ""]
        lines += [textwrap.fill(f"- {remark}", 120, subsequent_indent="  ", break_on_hyphens=False)
                  for remark in self.remarks] + [""] * bool(self.remarks)
        lines += [f"- [{table}]({table}/table.md): {len(records)} row{'s' * (len(records) != 1)}"
                  for table, records in self.tables.items()]
        (root / self.folder / "README.md").write_text("\n".join(lines) + "\n")


def table_of(records):
    """Markdown, with a column for each figure that one of the records has."""
    rows_of_cells = []
    for record in records:
        cells = {axis: text_of(value) for axis, value in record["axes"].items()}
        for name, phase in record["phases"].items():
            spread = f" ± {phase['std_ms']:.6g}" if "std_ms" in phase else ""
            cells[f"{name}, ms"] = f"{phase['mean_ms']:.10g}{spread}"
            if "share" in phase:
                cells[f"{name}, share of the step"] = f"{phase['share']:.10g}"
        for name, metric in record["metrics"].items():
            unit = f", {metric['unit']}" if metric["unit"] else ""
            cells[name + unit] = metric.get("word") or f"{metric['value']:.10g}"
        memory = record.get("memory", {})
        for moment in memory.get("moments", []):
            cells[f"{moment['name']}, MiB"] = f"{moment['current_total_mib']:.10g}"
            for kind, amount in moment.get("current_mib", {}).items():
                cells[f"{moment['name']} {kind}, MiB"] = f"{amount:.10g}"
        if "peak_total_mib" in memory:
            cells["peak, MiB"] = f"{memory['peak_total_mib']:.10g}"
        rows_of_cells.append({**cells, "status": record["status"]})
    columns = list(dict.fromkeys(name for cells in rows_of_cells for name in cells if name != "status")) + ["status"]
    lines = [columns, ["---"] * len(columns)] + [[cells.get(name, "") for name in columns] for cells in rows_of_cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
