#!/usr/bin/env python3
"""The programs in PyTorch that stand beside workloads, as far as they can be tested without PyTorch: what their experiments
call them with, whether the two of a pair have the same cases, and what the programs count by themselves.

pytorch_peers_test.py SOURCES
"""
import argparse
import importlib
import itertools
import pathlib
import re
import sys
import time
import unittest

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None

SOURCES = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(SOURCES / "scripts"))
import pytorch_collectives
import pytorch_decoder
import pytorch_moe
import pytorch_peer

PAIRS = {name: f"{name}-beside-pytorch" for name in ("attention", "collectives", "decoder", "encoder-decoder", "moe")}
PAIRS["context-parallel"] = "context-parallel"


def experiment(name):
    return tomllib.loads((SOURCES / "configs" / f"{name}.toml").read_text())


def axes(of):
    return {key: values for key, values in of["sweep"].items() if key != "zip"}, of["sweep"].get("zip", [])


def cases(of):
    """The parameters of each case, settings aside."""
    plain, zipped = axes(of)
    choices = [[{key: value} for value in values] for key, values in plain.items()]
    choices += [[dict(zip(group, values)) for values in zip(*group.values())] for group in zipped]
    for parts in itertools.product(*choices):
        case = dict(of["workload"]["params"])
        for part in parts:
            case.update(part)
        yield case


def text(value):
    """As {name} has it in a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain(value):
    """A number is one however it is spelt."""
    try:
        return float(text(value))
    except ValueError:
        return text(value)


@unittest.skipIf(tomllib is None, "this Python reads no TOML")
class Experiments(unittest.TestCase):
    def test_a_program_takes_what_its_experiment_gives_it(self):
        for name in PAIRS:
            peer = experiment(f"pytorch-{name}")
            script = SOURCES / "configs" / peer["workload"]["params"]["script"]
            parser = importlib.import_module(script.stem).parser()
            for case, device in itertools.product(cases(peer), ("cpu", "cuda")):
                values = {**case, "device": device, "seed": 1234}
                words = [re.sub(r"\{(\w+)\}", lambda match: text(values[match[1]]), word) for word in case["command"]]
                self.assertEqual(words[0], "python3")
                told = vars(parser.parse_args(words[2:]))
                for key in told.keys() & values.keys():
                    self.assertEqual(plain(told[key]), plain(values[key]), (name, key))

    def test_both_sides_have_the_same_cases_and_steps(self):
        for name, own in PAIRS.items():
            ours, theirs = experiment(own), experiment(f"pytorch-{name}")
            self.assertEqual(axes(ours), axes(theirs), name)
            self.assertEqual(ours["measure"], theirs["measure"], name)
            self.assertEqual(ours.get("run"), theirs.get("run"), name)
            for our_case, their_case in zip(cases(ours), cases(theirs), strict=True):
                both = our_case.keys() & their_case.keys()
                self.assertGreater(len(both), 3, name)
                for key in both:
                    self.assertEqual(our_case[key], their_case[key], (name, key))


class Decoders(unittest.TestCase):
    def test_a_size_says_all_but_what_the_case_says(self):
        model = pytorch_decoder.model_of(pytorch_decoder.parser().parse_args(["--size", "qwen3-1.7b", "--layers", "4"]))
        self.assertEqual((model.d_model, model.layers, model.heads, model.kv_heads, model.head_dim), (2048, 4, 16, 8, 128))
        self.assertEqual((model.vocab_size, model.qk_norm, model.tied_embeddings), (151936, True, True))
        model = pytorch_decoder.model_of(pytorch_decoder.parser().parse_args(["--size", "small"]))
        self.assertEqual((model.kv_heads, model.head_dim, model.vocab_size, model.qk_norm), (12, 64, 10000, False))


class Experts(unittest.TestCase):
    def test_flops_are_of_what_a_token_uses(self):
        case = pytorch_moe.parser().parse_args(["--model", "qwen3-30b-a3b", "--layers", "4", "--vocab_size", "10000"])
        model = pytorch_moe.model_of(case)
        self.assertEqual((model.layers, model.vocab_size, model.head_dim, model.qk_norm), (4, 10000, 128, True))
        attention = 2 * 2048 * (4096 + 512) + 4096 * 1000
        experts = 2048 * (128 + 3 * 8 * 768)
        self.assertEqual(pytorch_moe.active_flops(model, 10, 1000), 60 * (4 * (attention + experts) + 2048 * 10000))

    def test_flops_of_latent_attention_are_of_its_products(self):
        case = pytorch_moe.parser().parse_args(["--model", "deepseek-v2-lite", "--layers", "1", "--vocab_size", "100"])
        attention = 2048 * (16 * 192 + 512 + 64) + 512 * 16 * 256 + 16 * 128 * 2048 + 16 * (192 + 128) / 2 * 1000
        self.assertEqual(pytorch_moe.active_flops(pytorch_moe.model_of(case), 10, 1000),
                         60 * (attention + 3 * 2048 * 10944 + 2048 * 100))

    def test_what_the_case_says_goes_before_what_the_model_says(self):
        case = pytorch_moe.parser().parse_args(["--qk_norm", "true", "--unit_limit", "7.5", "--first_dense_layers", "1"])
        model = pytorch_moe.model_of(case)
        self.assertEqual((model.qk_norm, model.unit_limit, model.first_dense_layers, model.experts), (True, 7.5, 1, 8))


class Collectives(unittest.TestCase):
    def test_sizes_are_those_of_the_workload(self):
        count = pytorch_collectives.element_count
        self.assertEqual(count("all_reduce", 4015, 4, 3), 1003)
        self.assertEqual(count("broadcast", 4015, 4, 3), 1003)
        for collective in ("reduce_scatter", "all_gather"):
            self.assertEqual(count(collective, 4015, 4, 3), 1002)

    def test_bus_bandwidth(self):
        factors = {"all_reduce": 1.5, "reduce_scatter": 0.75, "all_gather": 0.75, "broadcast": 1}
        for collective in pytorch_collectives.COLLECTIVES:
            self.assertEqual(pytorch_collectives.bus_factor(collective, 4), factors[collective])

    def test_data_tell_ranks_salts_and_places_apart_and_have_exact_sums(self):
        most = 2 ** pytorch_collectives.SIGNIFICANT_BITS["bf16"] // 4
        sent = [pytorch_collectives.sent_by(rank, most, salt) for rank, salt in itertools.product(range(4), range(2))]
        self.assertEqual({len(values) for values in sent}, {pytorch_collectives.PERIOD})
        for values in sent:
            self.assertEqual((min(values), max(values)), (-most, most))
            self.assertGreater(sum(a != b for a, b in zip(values, values[1:])), 0.9 * len(values))
        for a, b in itertools.combinations(sent, 2):
            self.assertGreater(sum(x != y for x, y in zip(a, b)), 0.9 * len(a))


class Cuda:
    """As much of torch.cuda as events need: a device on which a millisecond passes between two of them."""

    time_ms = 0.0
    peak = 3 << 30

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            Cuda.time_ms += 1
            self.at_ms = Cuda.time_ms

        def elapsed_time(self, end):
            return end.at_ms - self.at_ms

    def reset_peak_memory_stats(self):
        self.peak = 1 << 20

    def max_memory_allocated(self):
        return self.peak


class Parts(unittest.TestCase):
    def setUp(self):
        self.torch = argparse.Namespace(cuda=Cuda())
        self.results, self.metrics, self.measured = {}, {}, True
        self.assay = pytorch_peer.assay
        pytorch_peer.assay = self

    def tearDown(self):
        pytorch_peer.assay = self.assay

    # As much of assay.py as the programs' parts need.
    def is_measured(self):
        return self.measured

    def metric(self, name, value, unit="", better=""):
        self.metrics[name] = (value, unit, better)

    def result(self, name, value, unit="", better=""):
        self.results[name] = (value, unit, better)

    def test_on_a_gpu_events_time_the_measured_steps(self):
        parts = pytorch_peer.Parts(self.torch, True)
        for self.measured, more in ((False, 100), (True, 1), (True, 3)):
            with parts.part("forward"):
                Cuda.time_ms += more
        parts.report()
        self.assertEqual(self.results, {"forward": (3.0, "ms", "lower")})
        self.assertEqual(self.metrics, {})

    def test_on_the_cpu_they_are_metrics_of_the_step(self):
        parts = pytorch_peer.Parts(self.torch, False)
        self.measured = False
        with parts.part("set-up"):
            pass
        self.measured = True
        with parts.part("forward"):
            time.sleep(0.02)
        parts.report()
        (value, *more), = self.metrics.values()
        self.assertEqual((list(self.metrics), more), (["forward"], ["ms", "lower"]))
        self.assertGreaterEqual(value, 20)
        self.assertEqual(self.results, {})


class Peak(unittest.TestCase):
    def test_what_was_given_back_before_is_not_part_of_it(self):
        try:
            pathlib.Path("/proc/self/clear_refs").write_text("5")
        except OSError as error:
            self.skipTest(f"this kernel lets no peak begin anew: {error}")
        large = bytearray(b"x" * (256 << 20))
        before = pytorch_peer.PeakMemory(None, False).mib()
        del large
        self.assertLess(pytorch_peer.PeakMemory(None, False).mib(), before - 200)

    def test_of_a_gpu_it_is_reset(self):
        self.assertEqual(pytorch_peer.PeakMemory(argparse.Namespace(cuda=Cuda()), True).mib(), 1)


if __name__ == "__main__":
    unittest.main()
