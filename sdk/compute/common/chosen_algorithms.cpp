#include "chosen_algorithms.hpp"

#include <assay/algorithms.h>
#include <assay/plugin.hpp>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>
namespace assay::compute {
namespace {

struct Choice {
  std::string made_for;
  std::vector<std::string> algorithms;  // different ones; more than one where a key leaves something out
  std::string text;
};

// One for all devices of the process: a worker has one case on one device.
struct Choices {
  std::mutex mutex;
  std::deque<Choice> in_order;  // whose elements stay where they are
  std::map<std::string, Choice*> by_key;
};
Choices& choices() {
  static Choices all;
  return all;
}

std::atomic<StatusGuard> table_guard = nullptr;

assay_status count(assay_device*, std::uint64_t* out) noexcept {
  return guarded(table_guard, [&] {
    const std::lock_guard lock(choices().mutex);
    *out = choices().in_order.size();
  });
}

assay_status get(assay_device*, std::uint64_t index, assay_algorithm* out) noexcept {
  return guarded(table_guard, [&] {
    if (!ASSAY_HAS(out, assay_algorithm, algorithm))
      throw Error(ASSAY_INVALID_ARGUMENT, "assay_algorithm is shorter than its first version; set struct_size");
    const std::lock_guard lock(choices().mutex);
    if (index >= choices().in_order.size())
      throw Error(ASSAY_INVALID_ARGUMENT, "there is no chosen algorithm of this index; ask count() first");
    const Choice& choice = choices().in_order[index];
    out->made_for = choice.made_for.c_str();
    out->algorithm = choice.text.c_str();
  });
}

constexpr assay_algorithms extension{sizeof(assay_algorithms), count, get};

}  // namespace

const void* algorithms_extension(const char* id, StatusGuard guard) noexcept {
  if (std::strcmp(id, ASSAY_EXT_ALGORITHMS) != 0) return nullptr;
  table_guard = guard;
  return &extension;
}

void note_algorithm(const std::string& made_for, const std::string& algorithm) {
  const std::lock_guard lock(choices().mutex);
  Choice*& choice = choices().by_key[made_for];
  if (!choice) {
    choice = &choices().in_order.emplace_back();
    choice->made_for = made_for;
  }
  for (const std::string& known : choice->algorithms)
    if (known == algorithm) return;
  choice->algorithms.push_back(algorithm);
  choice->text += (choice->text.empty() ? "" : " | ") + algorithm;
}

void forget_algorithms() noexcept {
  const std::lock_guard lock(choices().mutex);
  choices().by_key.clear();
  choices().in_order.clear();
}

}  // namespace assay::compute
