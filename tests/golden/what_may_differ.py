"""What two sets of golden results may differ in, and why. Everything that is not listed here must be equal: values and
their types, the keys and their order, the lengths of lists, cells, lines and exit codes.

A pattern is a path with '/' between its parts; '*' stands for one part, '**' at the end for everything below.
"""

import re
from typing import NamedTuple


class Rule(NamedTuple):
    pattern: str
    reason: str
    may_be_absent: bool = False  # and what lies below may change its shape, unless it keeps its form
    keeps_form: bool = False  # where both have it: its keys and types
    form: str = ""  # what a text matches
    may_be_whole: bool = False  # a number that is written as an integer where it happens to be one


TIME = "a time, or computed from times"
NOISE = "what else ran on the machine"
IDENTITY = "follows the built files and their versions"
PROCESS = "memory of the process, which code and libraries take a part of"

# The record of a case: a line of cases.jsonl, an entry of the summary, an event.
RECORD = [
    Rule("hash", IDENTITY),
    Rule("plugin/version", IDENTITY),
    Rule("plugin/build", IDENTITY),
    Rule("plugin/file_hash", IDENTITY),
    Rule("plugin/abi", IDENTITY, may_be_absent=True),
    Rule("device/abi", IDENTITY, may_be_absent=True),
    Rule("device/build", IDENTITY, may_be_absent=True),
    Rule("files", IDENTITY, may_be_absent=True),
    Rule("libraries", IDENTITY, may_be_absent=True),
    Rule("algorithms", IDENTITY, may_be_absent=True),
    Rule("environment", "an id that follows the build", form="[0-9a-f]{16}"),
    Rule("host", "the name of the machine", may_be_absent=True),
    Rule("device/uuid", "the name of the machine's GPU", may_be_absent=True),
    Rule("started", TIME),
    Rule("wall_s/*", TIME),
    Rule("wall_s/setup_parts/*", TIME),
    Rule("wall_s/verify_parts/*", TIME),
    Rule("rates/*", TIME),
    Rule("sampling/settling_steps", TIME),
    Rule("sampling/unrecorded_steps", TIME),
    Rule("efficiency", "rates that are measured after the steps, left out where they are below the steps' own", True, True),
    *(
        Rule(f"efficiency/{figure}", TIME)
        for figure in "mfu_measured bound_percent_measured measured/gflop_per_s measured/gbytes_per_s".split()
    ),
    Rule("silent/step_mean_ms", TIME),
    Rule("silent/communication_tax", TIME),
    Rule("sampling/instrument_us", TIME),
    Rule("drift", TIME),
    Rule("spread", TIME),
    Rule("straggler/rank", TIME),
    Rule("straggler/share", TIME),
    Rule("memory/process_peak_mib", PROCESS),
    Rule("contention", NOISE, may_be_absent=True),
    Rule("threads", NOISE, may_be_absent=True),
    Rule("telemetry", NOISE, may_be_absent=True),
    Rule("validity/verdict", NOISE),
    Rule("validity/text", NOISE),
    *(
        Rule(f"phases/*/{figure}", TIME)
        for figure in (
            "mean_ms std_ms cv min_ms max_ms p50_ms p90_ms p95_ms p99_ms ci_low_ms ci_high_ms host_mean_ms device_mean_ms "
            "share autocorrelation effective_n"
        ).split()
    ),
    Rule("phases/*/samples_ms/*", TIME),
    *(Rule(f"step_metrics/data_wait_ms/{figure}", TIME) for figure in "mean std min max last".split()),
    Rule("step_metrics/data_wait_ms/samples/*", TIME),
    *(
        Rule(f"metrics/{name}/value", TIME, may_be_whole=True)
        for name in "communication_ms exposed_ms overlap_share".split()
    ),
    Rule("metrics/data_mb_per_s", "absent where the loader read nothing in the measured window", may_be_absent=True),
    *(
        Rule(f"by_rank/*/{figure}", TIME)
        for figure in "step_mean_ms step_std_ms step_p50_ms step_min_ms step_max_ms".split()
    ),
    Rule("by_rank/*/phases/*", TIME),
    Rule("by_rank/*/step_metrics/data_wait_ms", TIME),
    *(
        # A rank lists what it does not share with the others: two times may happen to be equal.
        Rule(f"by_rank/*/metrics/{name}", TIME, may_be_absent=True)
        for name in "communication_ms exposed_ms overlap_share data_mb_per_s".split()
    ),
    Rule("by_rank/*/process_peak_mib", PROCESS),
    # The record's own step is that of the rank that failed, and must be equal.
    Rule("by_rank/*/step", "how far the other ranks were when one failed"),
    Rule("by_rank/*/telemetry", NOISE, may_be_absent=True),
    Rule("by_rank/*/validity", NOISE),
]

ENVIRONMENT = [
    Rule("captured", TIME, may_be_absent=True),
    Rule("command", "has the folder of the set in it", may_be_absent=True),
    Rule("memory/available_mib", NOISE),
    Rule("load_average/*", NOISE),
    Rule("assay/version", IDENTITY),
    Rule("assay/revision", IDENTITY),
    Rule("assay/compiler", IDENTITY),
]

SUMMARY = [
    Rule("metadata/started", TIME),
    Rule("metadata/finished", TIME),
    Rule("metadata/host_version", IDENTITY),
    Rule("metadata/environments", "by ids that follow the build; environment is the same", may_be_absent=True),
    *(Rule(f"metadata/environment/{rule.pattern}", rule.reason) for rule in ENVIRONMENT),
    *(rule._replace(pattern=f"cases/*/{rule.pattern}") for rule in RECORD),
    *(Rule(f"epochs/*/{figure}", TIME) for figure in "wall_time_s samples_per_s data_wait_ms".split()),
    Rule("summary/wall_s", TIME),
    *(Rule(f"summary/epochs/*/{figure}", TIME) for figure in "mean_epoch_time_s samples_per_s".split()),
    Rule("summary/epochs/*/utilisation_percent", NOISE, may_be_absent=True),
]

EVENT = [Rule("time", TIME), *(rule._replace(pattern=f"record/{rule.pattern}") for rule in RECORD)]
# The stage is looked up from time to time: whether a short one is seen, and how far it is, is chance.
EVENTS_LEFT_OUT = ("stage", "progress")

# What is compared as text with its numbers masked, wherever it stands in a JSON file.
TEXTS_WITH_MASKED_NUMBERS = ["notes/*", "summary/lines/*"]

# Columns of table.csv, table.md and the terminal's table. Their cells may differ, but not in being empty.
COLUMNS = [
    Rule("hash|environment", IDENTITY),
    Rule(r"assay\.(version|revision|compiler)", IDENTITY),
    Rule(r"(plugin|device)\.(abi|build|version|file_hash)|files\..*", IDENTITY),
    Rule("started", TIME),
    *(
        Rule(rf"[a-z_]+\.{figure}", TIME)
        for figure in (
            "mean_ms std_ms cv cv_percent min_ms max_ms p50_ms p90_ms p95_ms p99_ms ci_low_ms ci_high_ms mean_s std_s "
            "host_mean_ms device_mean_ms share autocorrelation effective_n"
        ).split()
    ),
    Rule(r"[a-z]+_per_s", TIME),
    Rule("data_mb_per_s", TIME, may_be_absent=True),
    Rule(r"communication_ms|exposed_ms|overlap_share|communication_tax", TIME),
    Rule(r"data_wait_ms\.(mean|std|min|max|last)", TIME),
    Rule(r"wall_s\.[a-z]+(\.[a-z0-9_]+)?", TIME),
    Rule(r"sampling\.(settling_steps|unrecorded_steps|instrument_us)", TIME),
    Rule("drift|spread", TIME),
    Rule(r"straggler\.(rank|share)", TIME),
    Rule(r"by_rank\.step_mean_ms\.(min|max)", TIME),
    Rule(r"memory\.process_peak_mib", PROCESS),
    Rule("utilisation_percent", NOISE, may_be_absent=True),
    Rule(r"telemetry\..*", NOISE, may_be_absent=True),
    Rule(r"validity(\.text)?", NOISE),
]

# Notes that come and go with the machine's rest. They are left out before notes, lines and cells are compared.
NOTES_OF_NOISE = [
    r"the step time's cv is [\d.]+%, above 5%.*",
    r"the step time drifts by [+-][\d.]+%(?: of the mean)? from the first to the last third of the steps",
    r"contended: .*",
    r"\d+ threads?: .* kept busy by other processes .*",
    r".* waited for the processors? .*",
    r"other guests .*",
    # Of a build, and in a table, whose cell has the note's two halves apart.
    r"not optimised: .*",
    r"times may be many times too long: .*",
]

# Numbers and names within a text that is otherwise compared to the letter.
IN_TEXTS = [
    (r"\d{8}T\d{6}Z(-[0-9a-f]{4})?", "<run>", "the name of a run is made of its time"),
    (r"resident memory \d+ MiB", "resident memory <n> MiB", "how far a worker gets before the host looks again"),
    (r"\d+ bytes free", "<n> bytes free", NOISE),
    (r"\[127\.0\.0\.1\]:\d+", "[127.0.0.1]:<port>", "the system chooses the port"),
    (r"pair\.cc:\d+\] [^\[)]*", "pair.cc:<line>] <why>", "where Gloo notices first that its peer is gone"),
    (r"\(GNU [\d.]+ [A-Z]\w+( -O1, not optimised)?\)", "(<compiler>)", IDENTITY),
    (r"time: [\d.:]+( s)? in \d+ cases?: .*", "time: <times>", TIME),
    (r"measured for [\d.e-]+ s", "measured for <n> s", TIME),
]

# What may be absent from a record, but not from all records of a set whose other set has it.
IN_SOME_RECORD = ["efficiency"]

FILES_LEFT_OUT = {
    "_verified": "has the times of the data set's files",
    "roots.json": "says where the set was made",
}
FOLDERS_LEFT_OUT = {
    "environments": "has what environment.json has, by ids that follow the build",
}

SNAPSHOT = [
    *(
        Rule(pattern, "the system places memory where it likes")
        for pattern in ("segments/*/address", "segments/*/blocks/*/address", "device_traces/*/*/addr")
    ),
    Rule("device_traces/*/*/time_us", TIME),
]

# What the second set has and the first one cannot: settings that came since. Each is one line of experiment.toml, one
# key of a record's settings and of a summary's config, and one word of the list of settings in a message.

def is_record_that_failed(value):
    """The fields of such a record stood in the order in which they became known, and stand in that of all records now."""
    return "schema" in value and "status" in value and value["status"] != "ok"


NEW_SETTINGS = {
    "run.log_limit": "came with the limit to a worker's log",
    "run.teardown_timeout": "came with results that are kept before a case is taken down",
}


def column_rule(name):
    for rule in COLUMNS:
        if re.fullmatch(rule.pattern, name):
            return rule
    return None


def is_noise(note):
    return any(re.fullmatch(pattern, note) for pattern in NOTES_OF_NOISE)


def masked(text):
    for pattern, replacement, _ in IN_TEXTS:
        text = re.sub(pattern, replacement, text)
    return text


def without_new_settings(text):
    for setting in NEW_SETTINGS:
        text = text.replace(f"{setting}, ", "").replace(f", {setting}", "")
    return text


def explain():
    lines = []
    for title, rules in (
        ("record of a case", RECORD),
        ("environment.json", ENVIRONMENT),
        ("summary, beside its cases", [r for r in SUMMARY if not r.pattern.startswith("cases/")]),
        ("columns of tables", COLUMNS),
        ("memory snapshot", SNAPSHOT),
    ):
        lines.append(f"{title}:")
        for rule in rules:
            absent = ", may be absent" if rule.may_be_absent else ""
            lines.append(f"  {rule.pattern}: {rule.reason}{absent}")
    lines.append("files left out:")
    lines += [f"  {name}: {reason}" for name, reason in FILES_LEFT_OUT.items()]
    lines += [f"  {name}/: {reason}" for name, reason in FOLDERS_LEFT_OUT.items()]
    lines.append("notes left out:")
    lines += [f"  {pattern}" for pattern in NOTES_OF_NOISE]
    lines.append("within texts:")
    lines += [f"  {pattern}: {reason}" for pattern, _, reason in IN_TEXTS]
    lines.append("new in the second set:")
    lines += [f"  {name}: {reason}" for name, reason in NEW_SETTINGS.items()]
    return "\n".join(lines)
