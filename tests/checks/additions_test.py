#!/usr/bin/env python3
"""additions_test.py ROOT: how many files a new operation touches beside its test.

Whatever declares a function for each operation of the list demands a definition of a new one. This test knows all
that do, and finds the definition of each operation in one file of each. docs/architecture.md has their number.
"""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"]

STRUCT = ("sdk/compute/include/assay/compute/operations", r"^struct (\w+) \{")
# The header that declares a function for each operation: the folder of the definitions, and what one begins with.
DEFINITIONS = {
    "sdk/compute/common/operation_checks.hpp": ("sdk/compute/common", r"^void check\(const op::(\w+)&"),
    "sdk/compute/cpu/cpu_backend.hpp": ("sdk/compute/cpu", r"^void CpuBackend::execute\(const op::(\w+)&"),
    "sdk/compute/cuda/cuda_backend.hpp": ("sdk/compute/cuda", r"^void CudaBackend::execute\(const op::(\w+)&"),
    "sdk/compute/include/assay/compute/audited_backend.hpp": (
        "sdk/compute/audit",
        r"^void AuditedBackend::execute\(const op::(\w+)&",
    ),
    "tests/mutants/mutant_backend.hpp": ("tests/mutants", r"^void MutantBackend::execute\(const op::(\w+)&"),
}
# A sample is part of the operation's test, which calls it, too.
SAMPLES = {"tests/conformance/samples.hpp": ("tests/conformance", r"^op::(\w+) sample\(Given&")}


def sources(folder):
    return [file for file in sorted((ROOT / folder).rglob("*")) if file.suffix in (".cpp", ".hpp", ".cu")]


def files_by_operation(folder, pattern):
    found = {}
    for file in sources(folder):
        for name in re.findall(pattern, file.read_text(), re.MULTILINE):
            found.setdefault(name, []).append(file)
    return found


def operations():
    listed = []
    for file in sources(STRUCT[0]):
        rows = re.search(r"#define ASSAY_OPERATIONS_OF_\w+\(X\) \\\n((?:.*\\\n)*.*)\n", file.read_text())
        listed += [(name, file) for name in re.findall(r"X\((\w+)\)", rows[1])]
    return listed


class NewOperation(unittest.TestCase):
    def test_only_these_demand_a_definition(self):
        demanding = set()
        for folder in ("sdk", "host", "plugins", "tests"):
            for file in sources(folder):
                if re.search(r"^\s*ASSAY_OPERATIONS\(", file.read_text(), re.MULTILINE):
                    demanding.add(file.relative_to(ROOT).as_posix())
        self.assertEqual(demanding, {*DEFINITIONS, *SAMPLES})

    def test_struct_and_row_are_in_one_file(self):
        structs = files_by_operation(*STRUCT)
        self.assertGreater(len(operations()), 60)
        for name, file in operations():
            self.assertEqual(structs.get(name), [file], name)

    def test_each_definition_is_in_one_file(self):
        for folder, pattern in DEFINITIONS.values():
            found = files_by_operation(folder, pattern)
            for name, _ in operations():
                self.assertEqual(len(found.get(name, [])), 1, f"{name} in {folder}")

    def test_a_sample_is_beside_its_test(self):
        for folder, pattern in SAMPLES.values():
            found = files_by_operation(folder, pattern)
            for name, _ in operations():
                self.assertEqual(len(found.get(name, [])), 1, name)
                mentions = re.findall(rf"\bop::{name}\b", found[name][0].read_text())
                self.assertGreater(len(mentions), 2, f"{name}: the sample alone mentions it; expected its test, too")

    def test_the_page_has_their_number(self):
        number = NUMBERS[1 + len(DEFINITIONS)]
        row = re.search(r"^\| an operation \| \[(\w+)\]", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
        self.assertEqual(row[1], number)
        steps = (ROOT / "docs/operations.md").read_text().partition("## A new operation\n")[2].partition("\n## ")[0]
        self.assertEqual(steps.split("\n")[1].split(" ")[0].lower(), number)


if __name__ == "__main__":
    unittest.main()
