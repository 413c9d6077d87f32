"""The places of reports 000, 001 and 002; see places.py."""

from places import (DIMENSIONS, ROW_NUMBER, SIZE, STATUS, Difference, Figure, Lines, NoFigure, Table, Word, mean,
                    metric, moment, param, setting, std)

GUIDE = Table("report-000-guide/model-sizes",
              {"Size": SIZE, **DIMENSIONS, "Parameters": Figure(metric("parameters"))},
              stated=((param("vocab_size"), 10000, "- Vocabulary size: 10,000"),
                      (param("batch_size"), 4, "- Default batch size: 4"),
                      (param("context_length"), 512, "- Default context length: 512")))

EXAMPLE = Lines("report-000-guide/decoder-sizes", (
    (r"d_model: (\d+)", (Figure(param("d_model")),)),
    (r"d_ff: (\d+)", (Figure(param("d_ff")),)),
    (r"num_layers: (\d+)", (Figure(param("layers")),)),
    (r"num_heads: (\d+)", (Figure(param("heads")),)),
    (r"vocab_size: (\d+)", (Figure(param("vocab_size")),)),
    (r"batch_size: (\d+)", (Figure(param("batch_size")),)),
    (r"context_length: (\d+)", (Figure(param("context_length")),)),
    (r"Model has ([\d,]+) parameters \(([\d.]+M)\)",
     (Figure(metric("parameters")), Figure(metric("parameters"), rounded=True))),
    (r"Mean time: ([\d.]+ ms) \(([\d.]+) s\)", (Figure(mean("step")), Figure(mean("step"), 1000))),
    (r"Std dev: ([\d.]+ ms) \(([\d.]+) s\)", (Figure(std("step"), rounded=True), Figure(std("step"), 1000))),
    (r"Coefficient of variation: ([\d.]+%)", (Figure(("phases", "step", "cv"), rounded=True),))),
    stated=((param("size"), "small", "uv run python -m cs336_systems.benchmark --model-size small"),))

LAPTOP = "report-001-rtx-4090-laptop/decoder-sizes"
FP32_FORWARD_BACKWARD = ((param("precision"), "fp32", "**FP32 (full precision)**"),
                         (param("pass"), "forward_backward", "Forward and Backward Pass Timings"),
                         (setting("measure.warmup"), 5, "Your 5 warmup steps"))
LAPTOP_OK = Table(LAPTOP, {"Model Size": SIZE, "Parameters": Figure(metric("parameters")),
                           "Context": Figure(param("context_length")), "Batch": Figure(param("batch_size")),
                           "Mean Time": Figure(mean("step")), "Std Dev": Figure(std("step")),
                           "CV%": Figure(("phases", "step", "cv"), rounded=True)}, stated=FP32_FORWARD_BACKWARD)
LAPTOP_OOM = Table(LAPTOP, {"Model Size": SIZE, "Parameters": Figure(metric("parameters")), "Status": STATUS},
                   stated=(*FP32_FORWARD_BACKWARD, (param("batch_size"), 4, "For XL with bs=4, ctx=512"),
                           (param("context_length"), 512, "For XL with bs=4, ctx=512")))

LETTERS = Word(param("size"), {"S": "small", "M": "medium", "L": "large", "XL": "xl", "2p7": "2.7B"}, key=True)
COMPILE = {"False": "eager", "True": "graph"}
DTYPE = {"float32": "fp32", "bfloat16": "bf16"}
TIMES = {"fwd avg (sec)": Figure(mean("forward"), 1000), "fwd std (sec)": Figure(std("forward"), 1000),
         "back avg (sec)": Figure(mean("backward"), 1000), "back std (sec)": Figure(std("backward"), 1000),
         "fws & back avg (sec)": Figure(mean("step"), 1000), "fws & back std (sec)": Figure(std("step"), 1000),
         "status": STATUS, "": ROW_NUMBER, "batch_size": Figure(param("batch_size"))}
PROFILED = {"profile_memory": NoFigure("False in every row")}
BOTH_PASSES = ((param("pass"), "forward_backward", "fws & back avg (sec)"),)


def rtx_pro(table, *stated):
    return Table(f"report-002-rtx-pro-6000/{table}",
                 {**TIMES, **PROFILED, "model": LETTERS, "context_length": Figure(param("context_length")),
                  "dtype": Word(param("precision"), DTYPE), "device": Word(("device", "kind")),
                  "compile": Word(param("execution"), COMPILE)}, stated=(*BOTH_PASSES, *stated))


AIR = Table("report-002-macbook-air/decoder-sizes",
            {**TIMES, "model": LETTERS, "context_length": Figure(param("context_length")),
             "device": (Word(("device", "kind"), key=True), Word(setting("run.device"))),
             "compile": Word(param("execution"), COMPILE, key=True)}, stated=BOTH_PASSES)

M4 = Table("report-002-apple-m4/attention",
           {**TIMES, **PROFILED, "context_length": Figure(param("seq"), key=True),
            "d_model": Figure(param("head_dim"), key=True),
            "dtype": Word(param("dtype"), DTYPE), "device": Word(("device", "kind")),
            "compile": Word(param("execution"), COMPILE, key=True),
            "model mem": Figure(moment("after_model")), "model+fwd mem": Figure(moment("after_forward")),
            "model+fwd+back mem": Figure(moment("after_backward")),
            "fwd mem": Difference(moment("after_forward"), moment("after_model")),
            "back mem": Difference(moment("after_backward"), moment("after_forward"))},
           stated=((param("pass"), "both", "fws & back avg (sec)"),))

SUMS = "report-002-mixed-precision/accumulation"
RESULT = (Figure(metric("result")),)


def sum_of(pattern, terms, accumulator, upcast):
    return Lines(SUMS, ((pattern, RESULT),),
                 {param("terms_dtype"): terms, param("accumulator"): accumulator, param("upcast"): upcast},
                 ((("workload",), "accumulation", "mixed_precision_accumulation"),
                  (param("term"), 0.01, "cannot represent 0.01 correctly")))


TABLES = {
    "000": [GUIDE],
    "001": [LAPTOP_OK, LAPTOP_OOM],
    "002": [AIR, rtx_pro("decoder-fp32"), rtx_pro("decoder-warmup-0", (setting("measure.warmup"), 0, "No Warm-up")),
            rtx_pro("decoder-warmup-1", (setting("measure.warmup"), 1, "1 step warm up")), rtx_pro("decoder-bf16"),
            rtx_pro("decoder-compiled"), rtx_pro("decoder-bf16-compiled"), M4, M4],
}
LINES = {
    "000": [EXAMPLE],
    "001": [],
    "002": [sum_of(r"float32: tensor\(([\d.]+)\)", "fp32", "fp32", False),
            sum_of(r"float16: tensor\(([\d.]+), dtype=torch.float16\)", "fp16", "fp16", False),
            sum_of(r"float32 adding float16: tensor\(([\d.]+)\)", "fp16", "fp32", False),
            sum_of(r"float32 adding float16 manually upcast: tensor\(([\d.]+)\)", "fp16", "fp32", True)],
}
# Sentences whose figures are bounds.
NO_RESULTS = {"000": ["CV < 5% indicates stable"], "001": ["excellent stability (CV < 2%)"], "002": []}
