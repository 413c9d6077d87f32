#!/usr/bin/env python3
"""Reads the documents whose figures results/published/report-* hold; writes each table, and each line with a number.

    scripts/parse_report_tables.py FOLDER_OF_DOCUMENTS > tests/data/report_tables.json

A document is a file NNN_*.txt or NNN_*.md in Markdown; NNN is its number. Its tables come out as they stand, cell by
cell, under the headings above them; other lines, code included, only if they have a digit. tests/published holds the
records against the result, so that the documents themselves are not needed.
"""

import json
import pathlib
import re
import sys


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def is_rule(line):
    return re.fullmatch(r"\|?[\s:|-]*-[\s:|-]*\|?", line.strip()) is not None


class Document:
    def __init__(self, text):
        self.tables, self.lines = [], []
        self.headings = []
        self.read(text.splitlines())

    def section(self):
        return " > ".join(title for _, title in self.headings)

    def read(self, lines):
        in_code = False
        i = 0
        while i < len(lines):
            line = lines[i]
            if line.lstrip().startswith("```"):
                in_code = not in_code
            elif in_code or not line.lstrip().startswith(("#", "|")):
                self.add_line(line)
            elif line.startswith("#"):
                self.enter(line)
            elif i + 1 < len(lines) and is_rule(lines[i + 1]):
                i = self.add_table(lines, i)
                continue
            else:
                self.add_line(line)
            i += 1

    def enter(self, line):
        level = len(line) - len(line.lstrip("#"))
        self.headings = [heading for heading in self.headings if heading[0] < level]
        self.headings.append((level, line.strip("# ").strip()))

    def add_line(self, line):
        if re.search(r"\d", line):
            self.lines.append({"section": self.section(), "text": line.strip()})

    def add_table(self, lines, first):
        end = first + 2
        while end < len(lines) and lines[end].lstrip().startswith("|"):
            end += 1
        rows = [cells_of(line) for line in lines[first + 2:end]]
        columns = cells_of(lines[first])
        for row in rows:
            if len(row) != len(columns):
                sys.exit(f"{self.section()}: a row has {len(row)} cells, and the table {len(columns)} columns: {row}")
        self.tables.append({"section": self.section(), "columns": columns, "rows": rows})
        return end


def as_json(documents):
    """A row, and a line, on a separate line."""

    def text(value):
        return json.dumps(value, ensure_ascii=False)

    blocks = []
    for name, document in documents.items():
        tables = [f'{{"section": {text(t["section"])},\n "columns": {text(t["columns"])},\n "rows": [\n  '
                  + ",\n  ".join(text(row) for row in t["rows"]) + "]}" for t in document.tables]
        lines = [text(line) for line in document.lines]
        blocks.append(f'{text(name)}: {{"tables": [\n' + ",\n".join(tables) + '],\n"lines": [\n' + ",\n".join(lines)
                      + "]}")
    return "{" + ",\n".join(blocks) + "}\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = sorted(f for f in pathlib.Path(sys.argv[1]).iterdir() if re.fullmatch(r"\d{3}_.*\.(txt|md)", f.name))
    if not files:
        sys.exit(f"{sys.argv[1]} has no document NNN_*.txt or NNN_*.md")
    sys.stdout.write(as_json({f.name[:3]: Document(f.read_text(encoding="utf-8")) for f in files}))


if __name__ == "__main__":
    main()
