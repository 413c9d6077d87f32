"""What the tests of this folder share: a decoder of a few microseconds, and a host with a device that pretends to be a GPU."""
import os
import pathlib
import subprocess

SMALL_DECODER = """
d_model = 32
d_ff = 64
layers = 1
heads = 2
vocab_size = 50
batch_size = 2
context_length = 16
"""


def with_pretended_gpu(gpu, cpu, **more):
    """The environment of a host that finds the pretended GPU, which computes on the CPU's device."""
    return dict(os.environ, ASSAY_DEVICE_PATH=str(pathlib.Path(gpu).parent), PRETENDED_GPU_CPU=cpu, **more)


def run_experiment(assay, work, environment, *options):
    """Runs experiment.toml of the folder to its end, whatever that is."""
    return subprocess.run([assay, "run", "experiment.toml", *options], cwd=work, env=environment, capture_output=True,
                          text=True)
