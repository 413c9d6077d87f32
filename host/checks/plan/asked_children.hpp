// Questions that a plugin's code answers: asked in child processes, as many side by side as there are processors.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::host::plan {

// How a child answers the question of a number.
using Answer = std::function<nlohmann::json(std::size_t question)>;

// Why a child left a question open: "signal 11 (Segmentation fault)".
struct ChildDeath {
  std::string how;
  int signal = 0;  // that ended it; 0: none did
};
using AnswerOfDeath = std::function<nlohmann::json(const ChildDeath& death)>;

// How long a child may take for one question, and after how many that took longer it is asked no more.
struct Patience {
  std::chrono::milliseconds of_question{60'000};
  std::size_t most_overdue = 3;
};

// The answers to `count` questions, in their order. `open_in_child` opens in each child what its answers need; what it
// throws is thrown here as a PluginError. A question that a child does not live through, or that takes too long, is
// answered by `answer_of_death`, and another child goes on behind it; after a few that took so long the rest of that
// child's questions is answered so, too. Throws std::system_error where there can be no child.
std::vector<nlohmann::json> ask_children(std::size_t count, const std::function<Answer()>& open_in_child,
                                         const AnswerOfDeath& answer_of_death, const Patience& patience = {});

}  // namespace assay::host::plan
