"""Compares values, tables and texts of two sets of golden results. Each function yields (place, what differs)."""

import json
import re

import what_may_differ as allowed

RULE_LINE = re.compile(r"─+(  ─+)*")
NUMBER = re.compile(r"(?<![\w.#])[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?(?![\w])")
ROUNDED = re.compile(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?|-?inf|nan")


def show(value):
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


def without_repeated_numbers(text):
    return NUMBER.sub("#", text)


# ---------------------------------------------------------------------------------------------------- JSON


class Json:
    """Compares two JSON values under a list of rules."""

    def __init__(self, rules):
        self._rules = [(rule.pattern.split("/"), rule) for rule in rules]
        self._texts = [pattern.split("/") for pattern in allowed.TEXTS_WITH_MASKED_NUMBERS]

    @staticmethod
    def _matches(pattern, path):
        return len(pattern) == len(path) and all(p in ("*", part) for p, part in zip(pattern, path))

    def _rule(self, path):
        for pattern, rule in self._rules:
            if self._matches(pattern, path):
                return rule
        return None

    def _is_masked_text(self, path):
        return any(len(path) >= len(p) and self._matches(p, path[-len(p) :]) for p in self._texts)

    def differences(self, before, after, path=()):
        place = "/".join(path)
        rule = self._rule(path)
        if rule and rule.may_be_absent and not rule.keeps_form:
            return
        if rule and rule.may_be_whole and {type(before), type(after)} <= {int, float}:
            return
        if type(before) is not type(after):
            yield place, f"{show(before)} ({type(before).__name__}) became {show(after)} ({type(after).__name__})"
        elif isinstance(before, dict):
            yield from self._of_objects(before, after, path)
        elif isinstance(before, list):
            yield from self._of_lists(before, after, path)
        elif rule:
            if rule.form and isinstance(before, str) and not re.fullmatch(rule.form, after):
                yield place, f"{show(after)} is not of the form {rule.form}"
        elif isinstance(before, str):
            one, other = allowed.masked(before), allowed.masked(after)
            if self._is_masked_text(path):
                one, other = without_repeated_numbers(one), without_repeated_numbers(other)
            if one != other:
                yield place, f"{show(before)} became {show(after)}"
        elif before != after:
            yield place, f"{show(before)} became {show(after)}"

    def _required_keys(self, value, path):
        keys = []
        for key in value:
            rule = self._rule((*path, key))
            if not (rule and rule.may_be_absent):
                keys.append(key)
        return keys

    def _of_objects(self, before, after, path):
        place = "/".join(path)
        after = {key: value for key, value in after.items() if key in before or not is_new_setting(path, key)}
        one, other = self._required_keys(before, path), self._required_keys(after, path)
        for key in one:
            if key not in after:
                yield place, f"the key {key!r} is gone (was {show(before[key])})"
        for key in other:
            if key not in before:
                yield place, f"the key {key!r} is new ({show(after[key])})"
        if sorted(one) == sorted(other) and one != other and not allowed.is_record_that_failed(before):
            yield place, f"the order of the keys changed: {one} became {other}"
        for key in before:
            if key in after:
                yield from self.differences(before[key], after[key], (*path, key))

    def _of_lists(self, before, after, path):
        if path and path[-1] == "notes":
            before = [note for note in before if not is_noise_of_any_rank(note)]
            after = [note for note in after if not is_noise_of_any_rank(note)]
        if len(before) != len(after):
            yield "/".join(path), f"{len(before)} entries became {len(after)}: {show(before)}, {show(after)}"
        for i, (one, other) in enumerate(zip(before, after)):
            yield from self.differences(one, other, (*path, str(i)))


def is_new_setting(path, key):
    """A record names a setting by its whole name, the resolved experiment by its section and key."""
    return key in allowed.NEW_SETTINGS or (path and f"{path[-1]}.{key}" in allowed.NEW_SETTINGS)


def is_noise_of_any_rank(note):
    return allowed.is_noise(re.sub(r"^(rank|ranks) [\d, and]+: ", "", note))


# --------------------------------------------------------------------------------------------------- tables


def cells_differ(name, one, other, rounded):
    """What is wrong with two cells of one column, or nothing."""
    rule = allowed.column_rule(name)
    if name == "notes":
        one, other = (
            "; ".join(without_repeated_numbers(n) for n in cell.split("; ") if n and not is_noise_of_any_rank(n))
            for cell in (one, other)
        )
    if rule is None:
        return allowed.masked(one) != allowed.masked(other)
    if rule.may_be_absent:
        return False
    if (one == "") != (other == ""):
        return True
    return rounded and bool(ROUNDED.fullmatch(one)) != bool(ROUNDED.fullmatch(other))


def in_the_records_unit(name):
    """Tables for people have the unit that fits the largest figure of a column, a time as a rule."""
    for pattern, unit in ((r"_u?s$", "_ms"), (r"_gib$", "_mib")):
        if not name.endswith("_per_s"):
            name = re.sub(pattern, unit, name)
    return re.sub(r"^[MGT](?=[a-z]\w*_per_s$)", "", name)


def tables(before, after, rounded):
    """Of two tables, each a list of rows, the first one of them the header."""
    if rounded:
        before, after = ([[in_the_records_unit(n) for n in t[0]], *t[1:]] for t in (before, after))
    if before[0] != after[0]:
        yield "header", f"{before[0]} became {after[0]}"
        return
    if len(before) != len(after):
        yield "", f"{len(before) - 1} rows became {len(after) - 1}"
    for number, (one, other) in enumerate(zip(before[1:], after[1:]), 1):
        if len(one) != len(other):
            yield f"row {number}", f"{len(one)} cells became {len(other)}"
        for name, a, b in zip(before[0], one, other):
            if cells_differ(name, a, b, rounded):
                yield f"row {number}, {name}", f"{a!r} became {b!r}"


def table_of_markdown(text):
    rows = []
    alignment = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and all(re.fullmatch(r"-+:?", cell) for cell in cells):
            alignment = ["right" if cell.endswith(":") else "left" for cell in cells]
        else:
            rows.append(cells)
    return rows, alignment


def spans_of(rule_line):
    return [match.span() for match in re.finditer("─+", rule_line)]


def terminal_blocks(text):
    """Takes a terminal's text apart: ('line', text) and ('table', rows). A header may be broken at its dots, according
    to the width of the numbers below it, and is put together again."""
    lines = text.split("\n")
    at = 0
    blocks = []
    while at < len(lines):
        if not RULE_LINE.fullmatch(lines[at]):
            blocks.append(("line", lines[at]))
            at += 1
            continue
        spans = spans_of(lines[at])
        # A header takes as many lines as its most broken name has parts: those above that fit the columns.
        header = []
        while blocks and blocks[-1][0] == "line" and blocks[-1][1] and fits(blocks[-1][1], spans):
            header.insert(0, blocks.pop()[1])
        rows = [["".join(part(line, span) for line in header) for span in spans]]
        at += 1
        while at < len(lines) and lines[at] and fits(lines[at], spans):
            rows.append([part(lines[at], span) for span in spans])
            at += 1
        blocks.append(("table", rows))
    return blocks


def part(line, span):
    return line[span[0] : span[1]].strip()


def fits(line, spans):
    """Between two columns of a table are two blanks, and nothing stands right of the last one."""
    gaps = [line[a[1] : b[0]] for a, b in zip(spans, spans[1:])]
    return all(gap.strip() == "" for gap in gaps) and line[spans[-1][1] :].strip() == ""


# ---------------------------------------------------------------------------------------------------- text


def is_note_of_noise(line):
    cases = r"(?:case \d+(?: \([^)]*\))?|cases [\d, -]+|all \d+ cases)"
    match = re.match(rf"{cases}: (?:note: (.*)|validity \w+: .*)", line)
    return bool(match) and (match.group(1) is None or is_noise_of_any_rank(match.group(1)))


def masked_line(line):
    """Numbers masked, but for the number of a case and its axes before the first colon."""
    line = allowed.without_new_settings(allowed.masked(line))
    head, colon, rest = line.partition(": ") if line.startswith("case ") else ("", "", line)
    return head + colon + without_repeated_numbers(rest)


def texts(before, after, line_of):
    one = [line_of(line) for line in before]
    other = [line_of(line) for line in after]
    for number, (a, b) in enumerate(zip(one, other), 1):
        if a != b:
            yield f"line {number}", f"{before[number - 1]!r} became {after[number - 1]!r}"
    if len(one) != len(other):
        longer = before if len(one) > len(other) else after
        more = longer[min(len(one), len(other))]
        yield "", f"{len(one)} lines became {len(other)}; the first without a counterpart: {more!r}"


def transcripts(before, after):
    """What `assay run` and other commands print."""
    one = [block for block in terminal_blocks(before) if block[0] == "table" or not is_note_of_noise(block[1])]
    other = [block for block in terminal_blocks(after) if block[0] == "table" or not is_note_of_noise(block[1])]
    kinds = [kind for kind, _ in one]
    if kinds == [kind for kind, _ in other]:
        for index, ((kind, a), (_, b)) in enumerate(zip(one, other)):
            if kind == "table":
                yield from ((f"table, {place}", what) for place, what in tables(a, b, rounded=True))
            elif masked_line(a) != masked_line(b):
                yield f"line {index + 1}", f"{a!r} became {b!r}"
    else:
        lines = [[text if kind == "line" else "<table>" for kind, text in blocks] for blocks in (one, other)]
        yield from texts(*lines, masked_line)
