"""The places of report 003; see places.py."""

from places import (DIMENSIONS, SIZE, STATUS, FieldsByRow, Figure, NoFigure, Pair, Table, Word, mean, metric, moment,
                    param, setting, std)

SETTINGS_OF_LAPTOP = ((param("batch_size"), 4, "- 批次大小: `4`"), (param("vocab_size"), 10000, "- 词汇表大小: `10000`"),
                      (param("context_length"), 128, "- 上下文长度: `128`"),
                      (param("precision"), "fp16", "- 设备/数据类型: `cuda`、`float16`"),
                      (param("pass"), "forward_backward", "反向传播均值 (ms)"),
                      (setting("measure.steps"), 10, "- 测量: `10` 步"))
LAPTOP = Table("report-003-rtx-4060-laptop/decoder-sizes",
               {"规模": SIZE, **DIMENSIONS, "前向传播均值 (ms)": Figure(mean("forward")),
                "前向传播标准差 (ms)": Figure(std("forward")), "反向传播均值 (ms)": Figure(mean("backward")),
                "反向传播标准差 (ms)": Figure(std("backward"))},
               stated=(*SETTINGS_OF_LAPTOP, (setting("measure.warmup"), 5, "- 预热: `5` 步")))
WARMUP = Table("report-003-rtx-4060-laptop/decoder-warmup",
               {"规模": SIZE, "预热步数": Figure(setting("measure.warmup"), key=True),
                "前向传播均值 ± 标准差 (ms)": Pair(Figure(mean("forward")), Figure(std("forward"))),
                "反向传播均值 ± 标准差 (ms)": Pair(Figure(mean("backward")), Figure(std("backward")))},
               stated=SETTINGS_OF_LAPTOP,
               like=(LAPTOP.folder, param("size"), [figure.path for figure in DIMENSIONS.values()]))


def all_reduce(folder):
    return Table(f"{folder}/all-reduce",
                 {"backend": Word(param("backend"), key=True),
                  "world_size": (Figure(setting("run.ranks")), Figure(("ranks",))),
                  "tensor_mb": Figure(param("size_mb"), key=True), "mean_ms": Figure(mean("step")),
                  "std_ms": Figure(std("step")), "effective_gbps": Figure(metric("algorithm_bandwidth_gbs"))},
                 stated=((param("collective"), "all_reduce", "distributed_allreduce_single_node.py"),))


def ddp(folder, table, *stated):
    return Table(f"{folder}/{table}",
                 {"strategy": Word(param("strategy"), key=True),
                  "model_size": Word(param("size"), {"tiny": "tiny of report 003"}),
                  "bucket_size_mb": Figure(param("bucket_mb"), key=True), "mean_step_ms": Figure(mean("step")),
                  "mean_comm_wait_ms": Figure(mean("communication_wait")),
                  "comm_wait_ratio": Figure(("phases", "communication_wait", "share"))}, stated=stated)


PAIR = "report-003-rtx-5090-x2"
SGD_ON_TWO = ((param("optimizer"), "sgd", "bf16+sgd"), (setting("run.ranks"), 2, "world_size=2, bf16+sgd"))
SMOKE = "report-003-smoke"
ACCUMULATION = Table(f"{SMOKE}/accumulation",
                     {"metric": Word(param("published_name"), key=True), "value": Figure(metric("result"))},
                     stated=((("workload",), "accumulation", "accumulation（1.3）"),))
TORCH = {"torch.float32": "fp32", "torch.float16": "fp16"}
DTYPES = {"parameters_dtype_in_autocast": "parameters_dtype", "fc1_output_dtype": "fc1_output_dtype",
          "layernorm_output_dtype": "layer_norm_output_dtype", "logits_dtype": "logits_dtype",
          "loss_dtype": "loss_dtype", "gradients_dtype": "gradients_dtype"}
BF16 = Table(f"{SMOKE}/decoder-precision",
             {"model": Word(param("size")), "precision": Word(param("precision"), {"bf16_autocast": "bf16"}, key=True),
              "fwd_mean_ms": Figure(mean("forward")), "bwd_mean_ms": Figure(mean("backward")), "status": STATUS})
ATTENTION = Table(f"{SMOKE}/attention",
                  {"variant": Word(param("execution"), {"regular": "eager", "regular_compiled": "graph"}, key=True),
                   "batch_size": Figure(param("batch_size")), "seq_len": Figure(param("seq")),
                   "d_model": Figure(param("head_dim")), "fwd_mean_ms": Figure(mean("forward")),
                   "fwd_std_ms": Figure(std("forward")), "bwd_mean_ms": Figure(mean("backward")),
                   "bwd_std_ms": Figure(std("backward")), "bwd_mem_before_mb": Figure(moment("before_backward")),
                   "status": STATUS},
                  stated=((param("impl"), "naive", "attention regular vs compile"),
                          (param("pass"), "both", "bwd_mean_ms")))
EXECUTION = Table(f"{SMOKE}/decoder-execution",
                  {"variant": Word(param("execution"), {"compiled": "graph"}, key=True),
                   "mode": Word(param("pass"), {"forward_only": "forward"}, key=True), "model": Word(param("size")),
                   "mean_ms": Figure(mean("step")), "std_ms": Figure(std("step")),
                   "speedup_vs_eager": Figure(metric("speedup_vs_eager"))})
MEMORY = Table(f"{PAIR}/decoder-memory",
               {"model": Word(param("size")), "phase": Word(param("pass"), {"forward_only": "forward"}, key=True),
                "context_length": Figure(param("context_length"), key=True),
                "mixed_precision": Word(param("precision"), {"False": "fp32", "True": "bf16"}, key=True),
                "optimizer": Word(param("optimizer")), "peak_mean_mb": Figure(("memory", "step_peak_mib", "mean")),
                "peak_max_mb": (Figure(("memory", "step_peak_mib", "max")), Figure(("memory", "peak_total_mib"))),
                "status": STATUS, "error": Word(("reason",), {"-": "", "out_of_memory": "out of memory"}),
                "snapshot_path": NoFigure("a file of its authors")},
               stated=((param("batch_size"), 4, "2xRTX5090 实测（2.7B，batch_size=4，AdamW）"),))
FLASH = Table(f"{SMOKE}/flash-vs-regular",
              {"impl": Word(param("impl"), {"regular_attention": "naive", "flash_attention": "flash"}, key=True),
               "seq_len": Figure(param("seq")), "d_model": Figure(param("head_dim")),
               "dtype": Word(param("dtype"), {"bfloat16": "bf16"}), "causal": Word(param("causal"), {"True": True}),
               "forward_ms": Figure(mean("forward")), "backward_ms": Figure(mean("backward")),
               "end_to_end_ms": Figure(mean("step")), "status": STATUS},
              stated=((param("pass"), "both", "end_to_end_ms"),))


def sharded(folder):
    return Table(f"{folder}/sharded-optimizer",
                 {"variant": Word(param("variant"), {"sharded": "broadcast"}, key=True), "model": Word(param("size")),
                  "world_size": (Figure(setting("run.ranks")), Figure(("ranks",))),
                  "init_alloc_mb": Figure(moment("after_init")), "pre_step_alloc_mb": Figure(moment("before_step")),
                  "post_step_alloc_mb": Figure(moment("after_step")),
                  "peak_alloc_mb": Figure(("memory", "peak_total_mib")),
                  "param_mb": Figure(moment("after_step", "parameters")),
                  "optimizer_state_mb_post": Figure(moment("after_step", "optimizer_state")),
                  "other_mb_post": Figure(moment("after_step", "other")),
                  "step_ms": Figure(mean("optimizer+parameter_wait"))})


CPU = "report-003-cpu-smoke"
TABLES = {"003": [
    LAPTOP, WARMUP, all_reduce(CPU), ddp(CPU, "ddp-strategies"), all_reduce(PAIR),
    ddp(PAIR, "ddp-strategies", *SGD_ON_TWO), ddp(PAIR, "ddp-buckets", *SGD_ON_TWO), ACCUMULATION,
    FieldsByRow(f"{SMOKE}/dtypes", "metric", "value",
                {name: Word(("metrics", here, "word"), TORCH) for name, here in DTYPES.items()},
                stated=((("workload",), "dtypes", "autocast dtype report（1.4a）"),
                        (param("casting"), "autocast", "autocast dtype report（1.4a）"))),
    BF16, ATTENTION, EXECUTION, EXECUTION, MEMORY, MEMORY, FLASH, sharded(SMOKE), sharded(PAIR)]}
LINES = {"003": []}
# The quotient of two figures of the table: 23.159 / 77.149.
NO_RESULTS = {"003": ["标准差/均值 ≈ 30%"]}
