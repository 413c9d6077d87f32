#!/usr/bin/env python3
"""Writes results/published/report-*: figures that four documents on training benchmarks have published, as records.

They have means and standard deviations, and no samples. What a document does not say (a version, often the device) is
absent from its records, unless a case cannot be identified without it: then it is assumed, and a note of the record,
which begins with "assumed: ", says so. Each table below stands as it was published; tests/published holds the records
against the documents. The tables are data, and stand beside the code that turns them into records; what is written of
records is published_source.py.

    scripts/make_published_reports.py [FOLDER]      FOLDER: results/published of this repository, unless given
"""

import pathlib
import sys

from published_source import Source

SIZES = {"S": "small", "M": "medium", "L": "large", "XL": "xl", "2p7": "2.7B"}
# size: d_model, d_ff, layers, heads, as in the tables of reports 000 and 003
DIMENSIONS = {"small": (768, 3072, 12, 12), "medium": (1024, 4096, 24, 16), "large": (1280, 5120, 36, 20),
              "xl": (1600, 6400, 48, 25), "2.7B": (2560, 10240, 32, 32)}


# A framework prepares nothing before its first step.
COLD = {"measure.prepare": False}


def rows(text):
    """The rows of a table: fields separated by spaces."""
    return [line.split() for line in text.strip().splitlines()]


def dimensions(size):
    return dict(zip(("d_model", "d_ff", "layers", "heads"), DIMENSIONS[size]))


def parameters(count):
    return {"parameters": (count, "", 0)}


def seconds_to_ms(mean, std):
    return (float(mean) * 1e3, float(std) * 1e3)


# size, number of parameters as the guide's table has it, in millions
GUIDE_PARAMETERS = (("small", 128), ("medium", 354), ("large", 772), ("xl", 1500), ("2.7B", 2700))


def guide_and_analysis():
    guide = Source("report-000-guide", "report 000, benchmarking guide", {},
                   "The benchmarking guide: its model sizes, and the output of one run on a GPU that is not named",
                   "`model-sizes` is the guide's table of models, which were not measured. Its numbers of parameters "
                   "are as written there; those of report 001, and of the models here, are larger.")
    for size, millions in GUIDE_PARAMETERS:
        guide.add("model-sizes", "decoder", {"size": size},
                  {**dimensions(size), "vocab_size": 10000, "batch_size": 4, "context_length": 512},
                  metrics=parameters(millions * 1000000), notes=["a model's dimensions: nothing was measured"])
    guide.add("decoder-sizes", "decoder", {"size": "small"},
              {**dimensions("small"), "vocab_size": 10000, "batch_size": 4, "context_length": 512},
              {"step": (172.94, 2.405)}, n=10, items=(2048, "tokens"), metrics=parameters(128625408),
              assumed={"pass": "forward_backward", "precision": "fp32", "measure.warmup": 5, "measure.steps": 10,
                       "device": "cuda"},
              notes=["the guide's defaults are 5 and 10 steps; the example does not say that it has them"])

    laptop = Source("report-001-rtx-4090-laptop", "report 001, results and analysis",
                    {"kind": "cuda", "name": "NVIDIA GeForce RTX 4090 Laptop GPU"},
                    "Decoder sizes on an RTX 4090 Laptop GPU, PyTorch, fp32, forward and backward",
                    "The numbers of parameters are as written (128.6M is 128600000). Of xl and 2.7B, which ran out of "
                    "memory, the document has approximations.")
    params = {"batch_size": 4, "context_length": 512, "pass": "forward_backward", "precision": "fp32"}
    settings = {"measure.warmup": 5}
    # The guide's default; and compilation is one of the gains that the document expects of later.
    assumed = {"measure.steps": 10, "execution": "eager"}
    for size, count, mean, std in (("small", 128600000, 308.03, 17.85), ("medium", 423200000, 928.49, 9.42),
                                   ("large", 969400000, 17800.0, 1040.0)):
        laptop.add("decoder-sizes", "decoder", {"size": size}, params, {"step": (mean, std)}, settings=settings, n=10,
                   items=(2048, "tokens"), metrics=parameters(count), assumed=assumed)
    for size, count in (("xl", 2000000000), ("2.7B", 2700000000)):
        laptop.add("decoder-sizes", "decoder", {"size": size}, params, status="oom", reason="out of memory",
                   settings=settings, metrics=parameters(count), assumed=assumed)
    return [guide, laptop]


# device compile model fwd_avg fwd_std back_avg back_std both_avg both_std, in seconds; batch 4, context 256
MACBOOK = """
cpu False S 0.292967 0.0101263 0.690617 0.0515558 0.983585 0.0505515
cpu False M 1.07968 0.0161518 2.07311 0.122161 3.15279 0.121089
cpu False L 2.517 0.0938035 5.54676 0.212342 8.06376 0.1905
cpu True S 0.295624 0.00836923 0.671863 0.0613006 0.967486 0.0607266
cpu True M 1.06595 0.0177598 2.06168 0.0460032 3.12763 0.0424368
cpu True L 2.46093 0.0541857 5.35662 0.159464 7.81755 0.149976
mps False S 0.152136 0.000323014 0.350633 0.00910346 0.502768 0.00909772
mps False M 0.497226 0.0113818 1.05638 0.0234968 1.55361 0.0205562
mps False L 1.08069 0.0256076 2.58213 0.252054 3.66281 0.25075
mps True S 0.154377 0.00253189 0.351856 0.0111889 0.506234 0.0108987
mps True M 0.493877 0.00840203 1.05395 0.0220565 1.54783 0.0203935
mps True L 1.09464 0.0196739 3.15047 0.487463 4.24511 0.487066
"""

# model fwd_avg fwd_std back_avg back_std both_avg both_std, in seconds; batch 4, context 256
RTX_PRO = {
    "decoder-fp32": ("fp32", "eager", None, """
S 0.0101203 4.39494e-05 0.0141196 0.000145315 0.0242399 0.000138509
M 0.0202569 9.18798e-05 0.0340681 0.00021485 0.0543251 0.000194213
L 0.0299634 6.69663e-05 0.0640944 0.000134777 0.0940578 0.000116963
XL 0.0497967 4.44305e-05 0.111272 7.55653e-05 0.161069 6.11232e-05
2p7 0.0603869 0.000155709 0.160571 0.000173022 0.220958 7.54412e-05
"""),
    "decoder-warmup-0": ("fp32", "eager", 0, """
S 0.0353005 0.0790442 -0.00274821 0.0821705 0.0325523 0.0224501
M 0.034033 0.0423463 0.0219129 0.0424403 0.0559458 0.00282343
L 0.0352378 0.0151886 0.0588802 0.0151966 0.094118 0.000493203
XL 0.052992 0.00997852 0.110647 0.0100072 0.163639 0.000756646
2p7 0.062647 0.00871239 0.158404 0.00873731 0.221051 0.000659412
"""),
    "decoder-warmup-1": ("fp32", "eager", 1, """
S 0.0103984 0.000120235 0.0148159 0.00131654 0.0252143 0.00131104
M 0.0305459 0.0310978 0.0548498 0.0825875 0.0853957 0.0765089
L 0.0305613 0.000196254 0.0641871 0.000258344 0.0947484 0.000168006
XL 0.0499383 8.81006e-05 0.114248 0.000240845 0.164186 0.000224153
2p7 0.0600362 0.00103386 0.161622 0.00105505 0.221659 0.000210359
"""),
    "decoder-bf16": ("bf16", "eager", None, """
S 0.0115468 0.00025475 0.016251 0.00029472 0.0277978 0.000148198
M 0.0242751 0.000599148 0.0316248 0.000637135 0.0558999 0.000216708
L 0.0333411 6.47849e-05 0.0668117 9.27532e-05 0.100153 6.63783e-05
XL 0.0547619 6.14746e-05 0.112735 0.000142991 0.167497 0.000129102
2p7 0.0485177 4.27052e-05 0.115897 7.1541e-05 0.164415 5.73967e-05
"""),
    "decoder-compiled": ("fp32", "graph", None, """
S 0.00508969 2.39174e-05 0.00899177 2.61624e-05 0.0140815 1.06034e-05
M 0.0356223 0.0792748 0.00021299 0.079275 0.0358352 0.00017528
L 0.0179603 0.000290359 0.0503096 0.000323146 0.0682699 0.000141828
XL 0.0385235 0.000203871 0.0943493 0.000235015 0.132873 0.000116913
2p7 0.0516872 0.000636176 0.141835 0.000672963 0.193522 0.000219452
"""),
    "decoder-bf16-compiled": ("bf16", "graph", None, """
S 0.00615928 4.13104e-05 0.00826505 0.000401961 0.0144243 0.000399833
M 0.0132246 2.07604e-05 0.019979 0.000427588 0.0332035 0.000427084
L 0.0194133 7.00106e-05 0.0518976 0.00020119 0.0713109 0.000188615
XL 0.0421143 7.45255e-05 0.0954155 0.000139824 0.13753 0.000118307
2p7 0.0370287 0.000182895 0.102367 0.000217848 0.139396 0.000118352
"""),
}

# context_length d_model fwd_avg fwd_std back_avg back_std both_avg both_std, in seconds; batch 8
M4_ATTENTION = {
    "eager": """
16 256 0.000964747 0.000140073 0.000628642 0.000244892 0.00159339 0.000200877
32 256 0.000999366 0.000207542 0.00126654 0.000234368 0.00226591 0.00010888
16 1024 0.00278449 0.000719188 0.00711855 0.000768673 0.00990304 0.000271344
32 1024 0.00197874 0.00104569 0.00137835 0.00104589 0.00335709 1.9964e-05
""",
    "graph": """
16 256 0.000878016 0.000211566 0.00113324 0.000303261 0.00201126 0.000217272
32 256 0.000910615 0.000155417 0.00137933 0.000228465 0.00228994 0.000167456
16 1024 0.00134004 0.000286955 0.00747273 0.000728483 0.00881277 0.000669585
32 1024 0.00255449 0.00138711 0.0110278 0.00154581 0.0135822 0.000682247
""",
}


def three_phases(fields):
    return {"step": seconds_to_ms(*fields[4:6]), "forward": seconds_to_ms(*fields[0:2]),
            "backward": seconds_to_ms(*fields[2:4])}


SIZE_LETTERS = ("The document writes S, M, L, XL and 2p7 and gives no dimensions. That they are small, medium, large, "
                "xl and 2.7B of report 000 is assumed.")
COMPILED = "`graph` is what the document calls compiled."
DIFFERENCE = "The document has the backward time as a difference of two means, and its deviation with it."


def assignment_report():
    where = "report 002, assignment report"
    air = Source("report-002-macbook-air", where + ", End to End Benchmarks (MBAir)", {"name": "MacBook Air"},
                 "Decoder on a MacBook Air, CPU and MPS, PyTorch eager and compiled", COMPILED, SIZE_LETTERS)
    for device, compiled, model, *figures in rows(MACBOOK):
        air.add("decoder-sizes", "decoder",
                {"run.device": device, "execution": "graph" if compiled == "True" else "eager", "size": SIZES[model]},
                {"batch_size": 4, "context_length": 256, "pass": "forward_backward"}, three_phases(figures),
                device={"kind": device, "name": f"MacBook Air ({device})"}, items=(1024, "tokens"))

    pro = Source("report-002-rtx-pro-6000", where + ", End to End Benchmarks (RTX PRO 6000 WK)",
                 {"kind": "cuda", "name": "NVIDIA RTX PRO 6000 Workstation"},
                 "Decoder on an RTX PRO 6000 (workstation), PyTorch", COMPILED, SIZE_LETTERS, DIFFERENCE,
                 "One mean is negative (`decoder-warmup-0`, small); `assay compare` compares no such figure.")
    for table, (precision, execution, warmup, text) in RTX_PRO.items():
        for model, *figures in rows(text):
            phases = three_phases(figures)
            negative = phases["backward"][0] <= 0
            pro.add(table, "decoder", {"size": SIZES[model]},
                    {"batch_size": 4, "context_length": 256, "pass": "forward_backward", "precision": precision,
                     "execution": execution}, phases, items=(1024, "tokens"),
                    settings={} if warmup is None else {"measure.warmup": warmup}, assumed=COLD if warmup in (0, 1) else {},
                    notes=["backward, a difference of two means, is negative: nothing is compared with it"] * negative)

    m4 = Source("report-002-apple-m4", where + ", Self Attention (Apple M4)", {"kind": "mps", "name": "Apple M4"},
                "Attention alone on an Apple M4, PyTorch, batch 8, fp32", COMPILED,
                "The document has a `d_model` and no heads. It is taken for the dimension of one head of attention "
                "alone, without projections of its input or output. If its layer has projections, its times are those "
                "of more work, and like no case of attention without them.",
                "Its five columns of memory are 0 in every row, as nothing counts the memory of MPS. They are stored.")
    memory = {"moments": [{"name": name, "current_total_mib": 0.0}
                          for name in ("after_model", "after_forward", "after_backward")]}
    for execution, text in M4_ATTENTION.items():
        for seq, dim, *figures in rows(text):
            m4.add("attention", "attention", {"seq": int(seq), "head_dim": int(dim), "execution": execution},
                   {"batch_size": 8, "dtype": "fp32", "pass": "both"}, three_phases(figures), memory=memory,
                   assumed={"heads": 1, "projections": False, "impl": "naive"}, notes=["assumed: head_dim is d_model"])

    sums = Source("report-002-mixed-precision", where + ", mixed_precision_accumulation", {},
                  "0.01 added a thousand times, in four mixtures of formats",
                  "The document has the results and 0.01. That it is added 1000 times, one by one, is assumed.")
    for terms, accumulator, upcast, value in (("fp32", "fp32", False, 10.0001), ("fp16", "fp16", False, 9.9531),
                                              ("fp16", "fp32", False, 10.0021), ("fp16", "fp32", True, 10.0021)):
        sums.add("accumulation", "accumulation",
                 {"terms_dtype": terms, "accumulator": accumulator, "upcast": upcast},
                 {"term": 0.01}, metrics={"result": (value, "", 0)},
                 assumed={"operation": "sum", "order": "sequential", "terms": 1000, "data": "constant",
                          "stored": "accumulator"})
    return [air, pro, m4, sums]


# size fwd_mean fwd_std bwd_mean bwd_std, in ms
RTX_4060 = """
small 19.920 2.175 23.206 3.082
medium 52.056 5.215 63.543 3.584
large 77.149 23.159 131.873 0.581
xl 103.368 4.547 2239.672 17.477
2.7B 5305.990 174.848 48300.726 2803.290
"""
# size warm-up fwd_mean fwd_std bwd_mean bwd_std, in ms
RTX_4060_WARMUP = """
small 0 54.895 103.579 38.504 43.400
small 1 21.779 3.050 27.148 5.358
small 2 21.485 2.118 25.143 1.869
small 5 19.920 2.175 23.206 3.082
medium 0 72.413 98.527 70.682 26.522
medium 1 43.484 5.508 61.311 1.343
medium 2 45.230 3.047 62.480 1.895
medium 5 52.056 5.215 63.543 3.584
large 0 101.146 108.551 142.805 23.597
large 1 78.032 24.142 137.020 3.851
large 2 68.659 18.033 132.744 2.199
large 5 77.149 23.159 131.873 0.581
xl 0 147.227 116.770 2838.276 443.291
xl 1 131.035 32.839 3608.187 1453.018
xl 2 103.445 7.546 2445.984 487.236
xl 5 103.368 4.547 2239.672 17.477
2.7B 0 5440.966 985.767 52875.512 5676.078
2.7B 1 6559.964 1949.146 75058.446 21757.590
2.7B 2 4800.032 821.181 46554.128 6760.723
2.7B 5 5305.990 174.848 48300.726 2803.290
"""
# backend size_mb mean_ms std_ms effective GB/s
ALL_REDUCE_5090 = """
gloo 1 1.177 0.193 0.891
gloo 10 4.145 0.330 2.530
gloo 100 40.147 0.648 2.612
gloo 1024 433.904 18.193 2.475
nccl 1 0.069 0.003 15.302
nccl 10 0.541 0.681 19.393
nccl 100 3.319 0.023 31.591
nccl 1024 31.793 0.602 33.773
"""
# strategy bucket_mb step_ms wait_ms, wait / step
DDP_5090 = """
naive - 283.717 139.948 0.4933
flat - 275.381 137.146 0.4980
overlap_individual - 271.323 42.633 0.1571
"""
DDP_BUCKETS_5090 = """
overlap_bucketed 1.0 230.696 7.770 0.0337
overlap_bucketed 10.0 221.662 8.048 0.0363
overlap_bucketed 100.0 224.568 10.617 0.0473
overlap_bucketed 1000.0 264.168 12.227 0.0463
"""
DDP_SMOKE = """
naive - 56.044 38.714 0.6908
flat - 20.447 7.565 0.3700
overlap_individual - 23.335 8.489 0.3638
overlap_bucketed 1.0 20.020 4.391 0.2193
"""
# variant ranks size init pre_step post_step peak parameters optimizer_state other, in MiB; the optimizer's step in ms
SHARDED = """
baseline 1 small 256.060 1058.584 1058.584 1317.082 245.333 490.667 322.584 22.643
broadcast 1 small 256.060 1058.584 1058.584 1317.082 245.333 490.667 322.584 22.669
baseline 2 xl 3901.390 15622.678 15622.678 19530.686 3811.331 7622.664 4188.683 55.792
broadcast 2 xl 3901.390 11721.312 11721.312 13678.635 3811.331 3811.332 4098.648 125.828
"""
# precision context_length peak_mib of the forward pass; the training step is out of memory at each
MEMORY_5090 = """
fp32 128 13212.807
fp32 256 13319.170
fp32 512 13753.580
bf16 128 19599.135
bf16 256 19624.338
bf16 512 19857.580
"""
# the toy model under autocast to fp16
AUTOCAST_DTYPES = {"parameters_dtype": "fp32", "fc1_output_dtype": "fp16", "layer_norm_output_dtype": "fp32",
                   "logits_dtype": "fp16", "loss_dtype": "fp32", "gradients_dtype": "fp32"}


def add_all_reduce(source, table, text, notes=()):
    for backend, size, mean, std, rate in rows(text):
        # Whether Gloo worked on host or device memory the document does not say.
        device = source.device if backend == "nccl" else {"name": source.device.get("name", "not named")}
        source.add(table, "all_reduce", {"backend": backend, "run.ranks": 2, "size_mb": float(size)},
                   {"collective": "all_reduce"}, {"step": (float(mean), float(std))}, ranks=2, device=device,
                   metrics={"algorithm_bandwidth_gbs": (float(rate), "GB/s", 1)}, notes=notes)


def add_ddp(source, table, axis, text, params, assumed):
    for strategy, bucket, step, wait, ratio in rows(text):
        bucket_mb = {} if bucket == "-" else {"bucket_mb": float(bucket)}
        axes = {"strategy": strategy} if axis == "strategy" else bucket_mb
        ranks = {} if "run.ranks" in assumed else {"run.ranks": 2}
        source.add(table, "ddp", axes, {"strategy": strategy, **bucket_mb, **params},
                   {"step": float(step), "communication_wait": float(wait)}, ranks=2, settings=ranks,
                   shares={"communication_wait": float(ratio)}, assumed=assumed)


# What the document calls the optimizer's step includes its broadcasts: here two phases, and the column of their sum.
OPTIMIZER_STEP = "optimizer+parameter_wait"
SHARDED_REMARKS = ("`broadcast` is what the document calls sharded.",
                   "`step_ms` of the document is the time of the optimizer's step alone, broadcasts included. It "
                   f"stands as the phase `{OPTIMIZER_STEP}`: compare it with `--metric {OPTIMIZER_STEP}.mean_ms`. The "
                   "time of a whole training step is not published.")


def add_sharded(source, ranks_wanted, assumed):
    for variant, ranks, size, init, before, after, peak, weights, state, other, step in rows(SHARDED):
        if int(ranks) != ranks_wanted:
            continue
        held = {"parameters": float(weights), "optimizer_state": float(state), "other": float(other)}
        moments = [{"name": "after_init", "current_total_mib": float(init)},
                   {"name": "before_step", "current_total_mib": float(before)},
                   {"name": "after_step", "current_mib": held, "current_total_mib": float(after)}]
        source.add("sharded-optimizer", "sharded_optimizer", {"variant": variant}, {"size": size},
                   {OPTIMIZER_STEP: float(step)}, ranks=int(ranks), settings={"run.ranks": int(ranks)},
                   memory={"moments": moments, "peak_total_mib": float(peak)}, assumed=assumed)


def two_phases(forward, forward_std, backward, backward_std):
    return {"forward": (float(forward), float(forward_std)), "backward": (float(backward), float(backward_std))}


def laptop_of_003(where):
    laptop = Source("report-003-rtx-4060-laptop", where + ", benchmarking_script",
                    {"kind": "cuda", "name": "NVIDIA GeForce RTX 4060 Laptop GPU"},
                    "Decoder sizes and warm-up on an RTX 4060 Laptop GPU (8 GB), PyTorch, fp16",
                    "`precision = fp16` is what the document calls the data type float16. Its weights may be fp16 "
                    "alone, where fp16 here has fp32 weights beside them.")
    params = {"batch_size": 4, "context_length": 128, "vocab_size": 10000, "precision": "fp16",
              "pass": "forward_backward"}
    for size, forward, forward_std, backward, backward_std in rows(RTX_4060):
        laptop.add("decoder-sizes", "decoder", {"size": size}, {**dimensions(size), **params},
                   two_phases(forward, forward_std, backward, backward_std),
                   settings={"measure.warmup": 5, "measure.steps": 10}, n=10)
    for size, warmup, forward, forward_std, backward, backward_std in rows(RTX_4060_WARMUP):
        laptop.add("decoder-warmup", "decoder", {"size": size, "measure.warmup": int(warmup)},
                   {**dimensions(size), **params},
                   two_phases(forward, forward_std, backward, backward_std),
                   settings={"measure.steps": 10}, n=10, assumed=COLD)
    return laptop


def pair_of_003(where):
    pair = Source("report-003-rtx-5090-x2", where + ", 2 x RTX 5090",
                  {"kind": "cuda", "name": "NVIDIA GeForce RTX 5090"},
                  "All-reduce, data-parallel strategies, sharded optimizer and memory on two RTX 5090",
                  *SHARDED_REMARKS,
                  "`comm_wait_ratio` is the share of the phase `communication_wait`.",
                  "`effective_gbps` is in GB/s: 1 MiB in 1.177 ms are 0.891.")
    add_all_reduce(pair, "all-reduce", ALL_REDUCE_5090)
    xl = {"size": "xl", "optimizer": "sgd"}
    assumed = {"precision": "bf16_pure"}  # the document: bf16
    add_ddp(pair, "ddp-strategies", "strategy", DDP_5090, xl, assumed)
    add_ddp(pair, "ddp-buckets", "bucket", DDP_BUCKETS_5090, xl, assumed)
    add_sharded(pair, 2, {"precision": "bf16_pure", "optimizer": "adamw"})
    for precision, context, peak in rows(MEMORY_5090):
        inputs = {"size": "2.7B", "batch_size": 4, "optimizer": "adamw", "precision": precision}
        axes = {"precision": precision, "context_length": int(context)}
        pair.add("decoder-memory", "decoder", {**axes, "pass": "forward"}, inputs,
                 memory={"moments": [], "peak_total_mib": float(peak),
                         "step_peak_mib": {"mean": float(peak), "max": float(peak)}})
        pair.add("decoder-memory", "decoder", {**axes, "pass": "train_step"}, inputs, status="oom",
                 reason="out of memory")
    return pair


def cpu_of_003(where):
    smoke = Source("report-003-cpu-smoke", where + ", smoke run with Gloo on the CPU",
                   {"kind": "cpu", "name": "not named"},
                   "All-reduce and data-parallel strategies, a first try with Gloo on two CPU processes",
                   "The document's size `tiny` has no dimensions. It is called `tiny of report 003` here, so that it "
                   "is no pair of assay's own `tiny`; `--across size` sets them beside each other all the same.",
                   "`comm_wait_ratio` is the share of the phase `communication_wait`.")
    add_all_reduce(smoke, "all-reduce", "gloo 1 1.241 0.225 0.845")
    add_ddp(smoke, "ddp-strategies", "strategy", DDP_SMOKE, {"size": "tiny of report 003"}, {"run.ranks": 2})
    return smoke


# metric value, and how a sum of 1 and 19,999 times 0.001 comes out like that: terms accumulator order stored
ACCUMULATION_003 = """
fp32_sum 20.99900246 fp32 fp32 cascade accumulator
fp16_sum 21.00000000 fp16 fp32 pairwise fp16
mixed_input_fp16_acc_fp32_sum 21.00708771 fp16 fp32 pairwise accumulator
mixed_chunked_sum 21.00686646 fp16 fp32 chunked fp16
"""


def add_accumulation(source):
    for metric, value, terms, accumulator, order, stored in rows(ACCUMULATION_003):
        source.add("accumulation", "accumulation", {"published_name": metric}, {},
                   metrics={"result": (float(value), "", 0)}, device={},
                   assumed={"operation": "sum", "terms_dtype": terms, "accumulator": accumulator, "order": order,
                            "upcast": False, "stored": stored, "data": "one_first", "terms": 20000, "term": 0.001,
                            **{"chunked": {"chunk": 256}, "cascade": {"lanes": 8}}.get(order, {})})


def smoke_of_003(where):
    single = Source("report-003-smoke", where + ", smoke runs", {"name": "not named"},
                    "First tries on one GPU that is not named: precision, compilation, attention, memory accounting",
                    COMPILED,
                    "`accumulation`: the document has names and results. A sum of 1 and 19,999 times 0.001 gives them "
                    "here, in the formats and order that each record assumes. `published_name` is the document's.",
                    "`attention`, `flash-vs-regular`: the document's d_model is taken for the dimension of one head, "
                    "without projections.", *SHARDED_REMARKS)
    cuda = {"device": "cuda"}
    add_accumulation(single)
    words = ("fp32", "bf16", "fp16")
    single.add("dtypes", "dtypes", {}, {"casting": "autocast"}, assumed={"precision": "fp16", **cuda},
               metrics={name: (words.index(word), "", 0) for name, word in AUTOCAST_DTYPES.items()})
    for name, word in AUTOCAST_DTYPES.items():
        single.tables["dtypes"][0]["metrics"][name]["word"] = word
    for precision, forward, backward in (("fp32", 67.520, 83.271), ("bf16", 53.663, 116.377)):
        single.add("decoder-precision", "decoder", {"precision": precision}, {"size": "small"},
                   {"forward": forward, "backward": backward}, assumed=cuda)
    for execution, forward, backward in (("eager", (0.194, 0.077), (0.447, 0.054)),
                                         ("graph", (0.220, 0.047), (0.787, 0.030))):
        moments = [{"name": "before_backward", "current_total_mib": 19.125}]
        single.add("attention", "attention", {"execution": execution},
                   {"batch_size": 8, "seq": 256, "head_dim": 16, "impl": "naive", "pass": "both"},
                   {"forward": forward, "backward": backward}, memory={"moments": moments},
                   assumed={"heads": 1, "projections": False, **cuda}, notes=["assumed: head_dim is d_model"])
    for mode, execution, mean, std, speedup in (("forward", "eager", 68.587, 11.122, 1.0),
                                                ("forward", "graph", 35.850, 2.447, 1.913),
                                                ("train_step", "eager", 206.769, 55.713, 1.0),
                                                ("train_step", "graph", 151.916, 3.278, 1.361)):
        single.add("decoder-execution", "decoder", {"pass": mode, "execution": execution}, {"size": "small"},
                   {"step": (mean, std)}, metrics={"speedup_vs_eager": (speedup, "", 1)}, assumed=cuda)
    for impl, forward, backward, both in (("naive", 0.066, 0.149, 0.215), ("flash", 0.071, 0.893, 0.963)):
        single.add("flash-vs-regular", "attention", {"impl": impl},
                   {"seq": 128, "head_dim": 16, "dtype": "bf16", "causal": True, "pass": "both"},
                   {"step": both, "forward": forward, "backward": backward},
                   assumed={"heads": 1, "projections": False, **cuda}, notes=["assumed: head_dim is d_model"])
    add_sharded(single, 1, {"precision": "bf16_pure", "optimizer": "adamw", **cuda})
    return single


def distributed_report():
    where = "report 003, implementation and distributed results"
    return [laptop_of_003(where), pair_of_003(where), cpu_of_003(where), smoke_of_003(where)]


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "results" / "published"
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    sources = guide_and_analysis() + assignment_report() + distributed_report()
    for source in sources:
        source.write(root)
    records = sum(len(table) for source in sources for table in source.tables.values())
    print(f"{records} records of {len(sources)} sources in {root}")


if __name__ == "__main__":
    main()
