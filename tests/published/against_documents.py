"""Holds the records of results/published/report-* against the documents that they were taken from, both ways: every
number of every table is found at its place, and every figure and input of the records is stated by a document, follows
from others of its record, or is marked as assumed.

    against_documents.py [RESULTS [DOCUMENTS]]      of this repository, unless given
"""

import json
import re
import sys
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import places_000_to_002  # noqa: E402
import places_003  # noqa: E402
import places_004  # noqa: E402
from places import Difference, FieldsByRow, Figure, NoFigure, Pair, Word, setting  # noqa: E402

NO_RESULTS = {**places_000_to_002.NO_RESULTS, **places_003.NO_RESULTS, **places_004.NO_RESULTS}
TABLES = {**places_000_to_002.TABLES, **places_003.TABLES, **places_004.TABLES}
LINES = {**places_000_to_002.LINES, **places_003.LINES, **places_004.LINES}
UNITS = {"": 1, "ms": 1, "s": Decimal(1000), "%": Decimal("0.01"), "M": Decimal(10) ** 6, "B": Decimal(10) ** 9}
FIGURE_OF_PROSE = r"~?(\d[\d,]*(?:\.\d+)?) ?(ms|MB|Gbps|seconds|%)"
# Unit, and the direction that is better: 1 is higher, 0 neither.
WORD = ("", 0)
METRICS = {"parameters": ("", 0), "result": ("", 0), "algorithm_bandwidth_gbs": ("GB/s", 1), "speedup_vs_eager": ("", 1)}
ABSENT = ("-", "")
TOLERANCE = 1e-12  # what a product of doubles may lose; the last of ten digits is more


def is_number(text):
    try:
        return Written(text) is not None
    except ValueError:
        return False


class Written:
    """A number as a document writes it: ~2.0B, 17.8 s, 128,625,408."""

    def __init__(self, text):
        found = re.fullmatch(r"~?(-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?) ?([a-zA-Z%]*)", text)
        if not found or found[2] not in UNITS:
            raise ValueError(f"'{text}' is no number")
        digits, unit = Decimal(found[1].replace(",", "")), UNITS[found[2]]
        self.value = digits * unit
        self.half_digit = Decimal((0, (5,), digits.as_tuple().exponent - 1)) * unit

    def is_value(self, value, factor, rounded):
        wanted = float(self.value) * factor
        allowed = float(self.half_digit) * factor if rounded else 0
        return abs(value - wanted) <= allowed + TOLERANCE * abs(wanted)


class Record:
    def __init__(self, folder, line):
        self.folder, self.data = folder, json.loads(line)
        self.stated = set()  # the fields that a document has

    def __str__(self):
        return f"{self.folder} case {self.data['index']}"

    def at(self, path):
        value = self.data
        for key in path:
            if isinstance(value, list):
                value = {moment["name"]: moment for moment in value}
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value

    def assumed(self):
        """Field -> the text that the note has for it."""
        found = {}
        for note in self.data["notes"]:
            for key, value in re.findall(r"([\w.]+) = ([^,]+)", note if note.startswith("assumed: ") else ""):
                path = ("device", "kind") if key == "device" else setting(key) if "." in key else ("params", key)
                found[path] = value
        return found

    def fields(self):
        """Every input and figure: path, value."""

        def walk(path, value):
            if isinstance(value, dict):
                for key, below in value.items():
                    yield from walk((*path, key), below)
            elif isinstance(value, list):
                for moment in value:
                    yield from walk((*path, moment["name"]), {k: v for k, v in moment.items() if k != "name"})
            else:
                yield path, value

        for part in ("ranks", "params", "settings", "phases", "memory", "work", "rates"):
            if part in self.data:
                yield from walk((part,), self.data[part])
        for name, metric in self.data["metrics"].items():
            yield ("metrics", name, "word" if "word" in metric else "value"), metric.get("word", metric["value"])


class Comparison:
    def __init__(self, results, documents):
        self.results = Path(results)
        self.documents = json.loads(Path(documents).read_text(encoding="utf-8"))
        self.folders, self.mistakes = {}, []
        self.tables = self.numbers = self.words = self.fields = self.repeated = 0
        for file in sorted(self.results.glob("report-*/*/cases.jsonl")):
            self.records_of(str(file.parent.relative_to(self.results)))

    def mistake(self, text):
        self.mistakes.append(text)

    def records_of(self, folder):
        if folder not in self.folders:
            file = self.results / folder / "cases.jsonl"
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            self.folders[folder] = [Record(folder, line) for line in lines]
        return self.folders[folder]

    def run(self):
        for name, document in self.documents.items():
            if len(TABLES.get(name, [])) != len(document["tables"]):
                self.mistake(f"report {name} has {len(document['tables'])} tables, and "
                             f"{len(TABLES.get(name, []))} of them have a place")
                continue
            for place, table in zip(TABLES[name], document["tables"]):
                self.tables += 1
                where = f"report {name}, {table['section'].split(' > ')[-1]}"
                (self.fields_by_row if isinstance(place, FieldsByRow) else self.table)(where, place, table, document)
            read = set()
            for place in LINES[name]:
                read |= self.lines(f"report {name}", place, document)
            self.prose(name, [line["text"] for line in document["lines"] if line["text"] not in read], document)
        for folder, records in self.folders.items():
            if folder.startswith("report-"):
                for record in records:
                    self.every_field(record)

    # ---- from the documents to the records ----

    def table(self, where, place, table, document):
        if set(place.columns) != set(table["columns"]):
            unlike = sorted(set(place.columns) ^ set(table["columns"]))
            self.mistake(f"{where}: columns {unlike} have no place, or are gone")
            return
        for row in table["rows"]:
            cells = dict(zip(table["columns"], row))
            at = f"{where}, row {' '.join(row[:7])}"
            if all(isinstance(p, NoFigure) for p in place.columns.values()):
                self.no_numbers(at, cells)
                continue
            keys = [(p, cells[column]) for column, places in place.columns.items()
                    for p in (places if isinstance(places, tuple) else (places,)) if getattr(p, "key", False)]
            record = self.one_record(at, place, lambda r, keys=keys: all(self.agrees(r, p, text) for p, text in keys))
            if record is None:
                continue
            for column, places in place.columns.items():
                self.cell(f"{at}: {column}", record, places, cells[column])
            self.take_stated(at, record, place, document)

    def no_numbers(self, at, cells):
        for text in cells.values():
            if re.search(r"\d", text):
                self.mistake(f"{at}: '{text}' has a number, and no place")

    def fields_by_row(self, where, place, table, document):
        record = self.one_record(where, place, lambda r: True)
        if record is None:
            return
        for row in table["rows"]:
            cells = dict(zip(table["columns"], row))
            name = cells[place.name]
            if name not in place.rows:
                self.mistake(f"{where}: {name} has no place")
            else:
                self.cell(f"{where}, row {name}", record, place.rows[name], cells[place.value])
        self.take_stated(where, record, place, document)

    def lines(self, where, place, document):
        record = self.one_record(f"{where}, {place.figures[0][0]}", place, lambda r: True)
        read = set()
        if record is None:
            return read
        for pattern, places in place.figures:
            found = [m for m in (re.fullmatch(f".*?{pattern}.*", line["text"]) for line in document["lines"]) if m]
            # float16: tensor(...) also ends the line of what adds float16; the whole line is meant.
            found = [m for m in found if m.string.startswith(pattern.split("\\")[0].split("(")[0])] or found
            if not found:
                self.mistake(f"{where}: no line has '{pattern}'")
            read |= {match.string for match in found[:1]}
            for match in found[:1]:
                for figure, text in zip(places, match.groups()):
                    self.cell(f"{where}, line '{match.string}'", record, figure, text)
        self.take_stated(where, record, place, document)
        return read

    def prose(self, name, lines, document):
        """A figure with a unit in a sentence repeats one of a table, with as many digits or fewer, or is no result."""
        cells = {part.lstrip("~") for table in document["tables"] for row in table["rows"] for cell in row
                 for part in cell.split(" ± ")}
        numbers = [float(Written(cell).value) for cell in cells if re.match(r"-?\d", cell) and is_number(cell)]
        for line in lines:
            for digits, unit in re.findall(FIGURE_OF_PROSE, line):
                if any(quote in line for quote in NO_RESULTS[name]):
                    continue
                written = Written(f"{digits} s" if unit == "seconds" else f"{digits}%" if unit == "%" else digits)
                self.repeated += 1
                if not any(written.is_value(number, 1, True) for number in numbers):
                    self.mistake(f"report {name}, '{line}': {digits} {unit} is in no table, and not known as no result")

    def one_record(self, where, place, wanted):
        records = [r for r in self.records_of(place.folder)
                   if all(r.at(path) == value for path, value in place.where.items()) and wanted(r)]
        if len(records) != 1:
            self.mistake(f"{where}: {len(records)} records of {place.folder} are meant; expected 1")
            return None
        return records[0]

    @staticmethod
    def agrees(record, place, text):
        value = record.at(place.path)
        if isinstance(place, Word):
            return value == place.meaning.get(text, text)
        if text in ABSENT:
            return value is None
        return value is not None and Written(text).is_value(value, place.factor, place.rounded)

    def cell(self, at, record, places, text):
        for place in places if isinstance(places, tuple) else (places,):
            if isinstance(place, NoFigure):
                continue
            if isinstance(place, Pair):
                for figure, part in zip((place.first, place.second), text.split(" ± ")):
                    self.cell(at, record, figure, part)
                continue
            self.figure(at, record, place, text)

    def figure(self, at, record, place, text):
        record.stated.add(place.path)
        if isinstance(place, Difference):
            value = record.at(place.path) - record.at(place.less)
            holds = Written(text).is_value(value, 1, False)
        else:
            value, holds = record.at(place.path), self.agrees(record, place, text)
        if isinstance(place, Word):
            self.words += 1
        elif text not in ABSENT:
            self.numbers += 1
        if not holds:
            self.mistake(f"{at}: the document has '{text}', and {record} has {value} in {'.'.join(place.path)}")

    def take_stated(self, at, record, place, document):
        record.stated.update(place.where)
        for path, value, quote in place.stated:
            if not self.says(document, quote):
                self.mistake(f"{at}: the document does not say '{quote}'")
            if record.at(path) != value:
                self.mistake(f"{at}: {'.'.join(path)} is {value} by '{quote}', and {record.at(path)} in {record}")
            record.stated.add(path)
        if getattr(place, "like", ()):
            folder, key, paths = place.like
            other = next((r for r in self.records_of(folder) if r.at(key) == record.at(key)), None)
            for path in paths:
                record.stated.add(path)
                if other is None or other.at(path) != record.at(path):
                    self.mistake(f"{record}: {'.'.join(path)} is not that of {other}")

    @staticmethod
    def says(document, quote):
        return any(quote in line["text"] or quote in line["section"] for line in document["lines"]) or any(
            quote in table["section"] or quote in table["columns"] for table in document["tables"])

    # ---- from the records to the documents ----

    def every_field(self, record):
        assumed = record.assumed()
        for path, value in record.fields():
            self.fields += 1
            if path in assumed:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                if text != assumed[path]:
                    self.mistake(f"{record}: {'.'.join(path)} is {text}, and its note assumes {assumed[path]}")
                if path in record.stated:
                    self.mistake(f"{record}: {'.'.join(path)} is stated, and its note says that it is assumed")
            elif path not in record.stated and not self.follows(record, path, value):
                self.mistake(f"{record}: no document states {'.'.join(path)} = {value}, "
                             "and no note says that it is assumed")
        self.meaning(record, assumed)
        for axis, value in record.data["axes"].items():
            if record.at(setting(axis) if "." in axis else ("params", axis)) != value:
                self.mistake(f"{record}: its axis {axis} = {value} is not its input")

    def meaning(self, record, assumed):
        """What a figure is of: units and directions, the kind of device, the status."""
        for name, metric in record.data["metrics"].items():
            meant = METRICS.get(name, WORD if name.endswith("_dtype") else None)
            if meant != (metric["unit"], metric["direction"]):
                self.mistake(f"{record}: {name} is in '{metric['unit']}' with direction {metric['direction']}, and "
                             f"expected {meant}")
        kind, name = (record.data["device"].get(key) for key in ("kind", "name"))
        known = ("device", "kind") in record.stated or ("device", "kind") in assumed or (
            record.folder.startswith("report-003-cpu-smoke/") and kind == "cpu")  # a heading without a figure says so
        if kind is not None and not known and not (kind == "cuda" and name.startswith("NVIDIA ")):
            self.mistake(f"{record}: no document states device.kind = {kind} of {name}")
        if record.data["status"] != "ok" and ("status",) not in record.stated:
            self.mistake(f"{record}: no document states the status {record.data['status']}")

    @staticmethod
    def follows(record, path, value):
        """From other fields of the record, by a formula."""

        def is_near(wanted):
            return wanted is not None and abs(value - wanted) <= TOLERANCE * abs(wanted)

        step = record.at(("phases", "step", "mean_ms"))
        if path[-1] == "cv":
            return is_near(record.at((*path[:-1], "std_ms")) / record.at((*path[:-1], "mean_ms")))
        if path == ("ranks",):
            return value == (record.at(setting("run.ranks")) or 1)
        if path[-1] == "n":
            return value == record.at(setting("measure.steps"))
        if path == ("work", "items"):
            return value == record.at(("params", "batch_size")) * record.at(("params", "context_length"))
        if path == ("rates", "items_per_s"):
            return is_near(record.at(("work", "items")) * record.data["ranks"] * 1e3 / step)
        return path == ("work", "item_unit")


def compare(results, documents):
    comparison = Comparison(results, documents)
    comparison.run()
    return comparison


def main(arguments):
    root = HERE.parent.parent
    results = arguments[0] if arguments else root / "results" / "published"
    documents = arguments[1] if len(arguments) > 1 else root / "tests" / "data" / "report_tables.json"
    comparison = compare(results, documents)
    for text in comparison.mistakes:
        print(text)
    records = sum(len(r) for folder, r in comparison.folders.items() if folder.startswith("report-"))
    print(f"{len(comparison.documents)} documents: {comparison.numbers} numbers and {comparison.words} words of "
          f"{comparison.tables} tables and of lines, {comparison.repeated} figures of prose; "
          f"{comparison.fields} fields of {records} records: {len(comparison.mistakes)} mistakes")
    return 1 if comparison.mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
