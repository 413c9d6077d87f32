"""Where each table of the documents, and each line with a figure, stands in the records of results/published.

A field of a record is a path of keys: ("phases", "step", "mean_ms"). A moment of memory is known by its name.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """The written number times `factor` is the field's value. `rounded`: the field has more digits than written."""
    path: tuple
    factor: float = 1
    rounded: bool = False
    key: bool = False  # distinguishes the rows of the table


@dataclass(frozen=True)
class Word:
    """The field holds what the word is called here: itself, unless `meaning` has another name."""
    path: tuple
    meaning: dict = field(default_factory=dict)
    key: bool = False


@dataclass(frozen=True)
class Difference:
    """The written number is one field less another."""
    path: tuple
    less: tuple


@dataclass(frozen=True)
class Pair:
    """Two numbers in one cell: mean ± standard deviation."""
    first: Figure
    second: Figure


@dataclass(frozen=True)
class NoFigure:
    why: str


@dataclass(frozen=True)
class Table:
    folder: str  # below results/published
    columns: dict  # column -> one or several of the above
    where: dict = field(default_factory=dict)  # what else its records have, among others of the folder
    stated: tuple = ()  # (field, value, words of the document that say so)
    like: tuple = ()  # (another folder, key, fields): "as above", for the record there that has the same key


@dataclass(frozen=True)
class FieldsByRow:
    """A table with a row for each of one record's fields, which the column `name` names."""
    folder: str
    name: str
    value: str
    rows: dict  # what the column says -> Figure or Word
    where: dict = field(default_factory=dict)
    stated: tuple = ()


@dataclass(frozen=True)
class Lines:
    """Lines of code or prose of one record: (pattern, a place for each of its groups)."""
    folder: str
    figures: tuple
    where: dict = field(default_factory=dict)
    stated: tuple = ()


def param(name):
    return ("params", name)


def setting(name):
    return ("settings", name)


def mean(phase):
    return ("phases", phase, "mean_ms")


def std(phase):
    return ("phases", phase, "std_ms")


def metric(name):
    return ("metrics", name, "value")


def moment(name, *kind):
    return ("memory", "moments", name, *(("current_mib", *kind) if kind else ("current_total_mib",)))


SIZE = Word(param("size"), key=True)
STATUS = Word(("status",), {"OOM": "oom"})
ROW_NUMBER = NoFigure("the number of the row")
DIMENSIONS = {"d_model": Figure(param("d_model")), "d_ff": Figure(param("d_ff")),
              "num_layers": Figure(param("layers")), "num_heads": Figure(param("heads"))}
