#!/usr/bin/env python3
"""The comparisons with PyTorch: who is first in a round, and what a peak of memory is of. No PyTorch is needed.

interleaving_test.py SCRIPTS
"""
import argparse
import pathlib
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import interleaving


class Order(unittest.TestCase):
    def test_everyone_is_first_as_often(self):
        order = [round_[0] for round_ in interleaving.turns(["a", "b", "c"], 6)]
        self.assertEqual(order, ["a", "b", "c", "a", "b", "c"])
        for round_ in interleaving.turns(["a", "b", "c"], 6):
            self.assertEqual(sorted(round_), ["a", "b", "c"])


class Peak(unittest.TestCase):
    def test_what_was_given_back_before_is_not_part_of_it(self):
        try:
            pathlib.Path("/proc/self/clear_refs").write_text("5")
        except OSError as error:
            self.skipTest(f"this kernel lets no peak begin anew: {error}")
        large = bytearray(b"x" * (256 << 20))
        before = interleaving.PeakMemory(None, False).mib()
        del large
        self.assertLess(interleaving.PeakMemory(None, False).mib(), before - 200)

    def test_of_a_gpu_it_is_reset(self):
        class Cuda:
            peak = 3 << 30

            def reset_peak_memory_stats(self):
                self.peak = 1 << 20

            def max_memory_allocated(self):
                return self.peak

        self.assertEqual(interleaving.PeakMemory(argparse.Namespace(cuda=Cuda()), True).mib(), 1)


if __name__ == "__main__":
    unittest.main()
