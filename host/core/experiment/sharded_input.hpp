// An input file that stands for several: the index of weights in several files, as Hugging Face's libraries write it
// ("model.safetensors.index.json" beside "model-00001-of-00002.safetensors"). Its shards are inputs of a case, too.
#pragma once
#include <string>
#include <vector>

namespace assay::host::experiment {

struct Shards {
  std::vector<std::string> paths;  // beside the index, sorted; none where the input is a file by itself
  std::string problem;             // "" while the index names files that are there
};
// Reads the index. An input by another kind of name is a file by itself.
Shards shards_of(const std::string& input);

}  // namespace assay::host::experiment
