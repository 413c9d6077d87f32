"""The places of report 004, which has no results: its defaults and sizes are those of the encoder-decoder here."""

from places import FieldsByRow, Figure, Lines, NoFigure, Table, param

ONE_GPU = "h200-2026-11-21"
FLAGS = {"`--d-model`": "d_model", "`--nhead`": "heads", "`--num-encoder-layers`": "encoder_layers",
         "`--num-decoder-layers`": "decoder_layers", "`--dim-feedforward`": "d_ff"}
STACKS = (r"--d-model (\d+) --nhead (\d+) --num-encoder-layers (\d+) --num-decoder-layers (\d+) "
          r"--dim-feedforward (\d+)",
          tuple(Figure(param(name)) for name in FLAGS.values()))


def preset(name, *figures):
    return Lines(f"{ONE_GPU}/encoder-decoder-sizes", figures, {param("preset"): name, param("execution"): "graph"})


def stacks(d_model):
    pattern, places = STACKS
    return (pattern.replace(r"(\d+)", f"({d_model})", 1), places)


TABLES = {"004": [FieldsByRow(f"{ONE_GPU}/encoder-decoder", "Flag", "Default",
                              {flag: Figure(param(name)) for flag, name in FLAGS.items()}),
                  Table("", {"Metric": NoFigure("what is measured"), "Description": NoFigure("in words")})]}
LINES = {"004": [
    preset("60M", stacks(512)), preset("220M", stacks(768)),
    preset("2.9B", (r"--disk --batch-size (\d+) --seq-len (\d+)",
                    (Figure(param("batch_size")), Figure(param("sequence_length")))),
           (r"--d-model (2048) --nhead (\d+)", (Figure(param("d_model")), Figure(param("heads")))),
           (r"--num-encoder-layers (24) --num-decoder-layers (\d+)",
            (Figure(param("encoder_layers")), Figure(param("decoder_layers")))),
           (r"--dim-feedforward (8192)", (Figure(param("d_ff")),)))]}
NO_RESULTS = {"004": []}
