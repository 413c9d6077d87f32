"""The commands of docs/seeds are taken by the executable: experiments run dry, comparisons of published records run.

    commands_test.py ASSAY
"""

import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "docs" / "seeds").glob("*.md"))


def text_of(page):
    """Commands may go on in the next line: after a backslash, or within backticks."""
    return re.sub(r"\s*\\?\n\s*", " ", page.read_text(encoding="utf-8"))


def run_commands(page):
    for command in re.findall(r"`(scripts/run configs/[^`]+)`", text_of(page)):
        for part in command.split(" && "):
            if part.startswith("scripts/run "):
                yield part


def compare_commands(page):
    """Those of published records alone: a run of the reader's own is not there."""
    records = r"assay compare((?: results/published/[\w/.-]+)+)(?! results/)((?: --[\w-]+(?: [\w+,.]+)?)*)"
    return [match.group(0) for match in re.finditer(records, text_of(page))
            if match.group(1).count("results/") > 1 or "--by" in match.group(2)]


class Commands(unittest.TestCase):
    assay = ""

    def answer_to(self, arguments):
        with tempfile.TemporaryDirectory() as folder:
            if "--output" in arguments:
                arguments[arguments.index("--output") + 1] = str(Path(folder) / "table.csv")
            return subprocess.run([self.assay, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    def test_every_experiment_is_one(self):
        commands = [(page.name, command) for page in PAGES for command in run_commands(page)]
        self.assertGreater(len(commands), 40)
        for page, command in commands:
            with self.subTest(page=page, command=command):
                # Not every machine has room for each of them.
                room = ["--set", 'run.allow=["oom"]']
                done = self.answer_to(["run", *shlex.split(command)[1:], "--dry-run", *room])
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_comparison_compares(self):
        commands = [(page.name, command) for page in PAGES for command in compare_commands(page)]
        self.assertGreater(len(commands), 4)
        for page, command in commands:
            with self.subTest(page=page, command=command):
                done = self.answer_to(shlex.split(command)[1:])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("nothing could be compared", done.stdout.lower())


if __name__ == "__main__":
    Commands.assay = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
