#include "shared_algorithms.hpp"

#include <fmt/format.h>
#include <assay/plugin.hpp>

#include <nlohmann/json.hpp>
#include <utility>

namespace assay::compute {
namespace {

using nlohmann::json;

constexpr const char* end_text = "end";

}  // namespace

void SharedAlgorithms::share(AlgorithmExchange* with) {
  AlgorithmExchange* const before = std::exchange(exchange_, with);
  const bool is_leader = role_ == Role::leader;
  const std::int64_t next = next_;
  role_ = Role::undecided;
  next_ = 0;
  has_ended_ = false;
  told_.clear();
  if (before && is_leader) before->put(devices_, next, end_text);
}

void SharedAlgorithms::decide() {
  if (role_ != Role::undecided) return;
  if (devices_.empty()) devices_ = ask_devices_();
  role_ = exchange_->lead(devices_) ? Role::leader : Role::follower;
}

void SharedAlgorithms::read_next() {
  const std::string text = exchange_->get(devices_, next_);
  ++next_;
  if (text == end_text) {
    has_ended_ = true;
    return;
  }
  try {
    const json choice = json::parse(text);
    told_.emplace(choice.at("made_for").get<std::string>(),
                  CachedAlgorithm{choice.at("algorithm").get<std::string>(), choice.at("microseconds").get<double>()});
  } catch (const json::exception& e) {
    throw Error(
        ASSAY_INTERNAL,
        fmt::format("another rank sent its choice of an algorithm in a form that this rank cannot read: {}", e.what()));
  }
}

std::optional<CachedAlgorithm> SharedAlgorithms::find(const std::string& key) {
  if (!exchange_) return std::nullopt;
  decide();
  if (role_ == Role::leader) return std::nullopt;
  for (;;) {
    if (const auto found = told_.find(key); found != told_.end()) return found->second;
    if (has_ended_) return std::nullopt;
    read_next();
  }
}

void SharedAlgorithms::tell(const std::string& key, const CachedAlgorithm& algorithm) {
  if (!exchange_) return;
  decide();
  if (role_ != Role::leader) return;
  const json choice{{"made_for", key}, {"algorithm", algorithm.algorithm}, {"microseconds", algorithm.microseconds}};
  exchange_->put(devices_, next_, choice.dump());
  ++next_;
}

std::string origin_of_told(const CachedAlgorithm& choice) {
  if (choice.microseconds <= 0) return "not measured, as on another rank";
  return fmt::format("{:.1f} us, measured by another rank", choice.microseconds);
}

}  // namespace assay::compute
