"""What docs/compare.md says of the 5th percentile on GPUs is what the published records give.

    percentiles_test.py
"""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LEAST_STEPS = 10
LEAST_MEAN_MS = 10
FAR = 0.015


def quantile(samples, q):
    """As host/analysis/compare/verdict.cpp has it."""
    ordered = sorted(samples)
    position = q * (len(ordered) - 1)
    below = int(position)
    rest = position - below
    return ordered[below] + (rest * (ordered[below + 1] - ordered[below]) if rest else 0)


def long_steps_on_gpus():
    """The samples of each case that is meant: warmed up, since a cold start is another thing than noise."""
    for file in sorted((ROOT / "results" / "published").glob("*/*/cases.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            samples = case.get("phases", {}).get("step", {}).get("samples_ms", [])
            warm_up = case["axes"].get("measure.warmup", case["settings"].get("measure.warmup", 0))
            if case["status"] == "ok" and case["device"].get("kind") == "cuda" and warm_up > 0 and \
                    len(samples) >= LEAST_STEPS and sum(samples) / len(samples) > LEAST_MEAN_MS:
                yield samples


class Percentiles(unittest.TestCase):
    def test_the_document_has_the_figures_of_the_records(self):
        below, medians_off = [], []
        for samples in long_steps_on_gpus():
            mean = sum(samples) / len(samples)
            below.append(1 - quantile(samples, 0.05) / mean)
            medians_off.append(abs(1 - quantile(samples, 0.5) / mean))
        expected = (f"counts {len(below)} published GPU cases with at least {LEAST_STEPS} warmed-up steps and a mean above "
                    f"{LEAST_MEAN_MS} ms. The 5th percentile is over {FAR:.1%} below the mean in {sum(b > FAR for b in below)} "
                    f"(at most {max(below):.1%}, at most {quantile(below, 0.5):.1%} in half of all); the median is as far from it "
                    f"in {sum(m > FAR for m in medians_off)}.")
        text = re.sub(r"\s+", " ", (ROOT / "docs" / "compare.md").read_text(encoding="utf-8"))
        self.assertTrue(expected in text, f"docs/compare.md should say: {expected}")


if __name__ == "__main__":
    unittest.main()
