#include "run/crew.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "common/exit_code.hpp"
#include "run/crew_keys.hpp"
#include "run/stop_at_signal.hpp"
#include "wireup/socket_options.hpp"

namespace assay::host::run {

Crew::Crew() = default;

Crew::Crew(const wireup::LaunchedRank& launched, const std::filesystem::path& rendezvous_folder,
           wireup::KeyValue::Timeout patience, const launch::InterruptHandler& interrupts)
    : launched_(launched), watch_(store_.watch(crew_group)), orders_given_(static_cast<std::size_t>(launched.size)) {
  rendezvous_ = std::make_unique<wireup::RendezvousPoint>(store_, launched, rendezvous_folder);
  try {
    gather(patience, interrupts);
  } catch (const wireup::WireupError& error) {
    std::string text = error.what();
    if (const std::string asked = hello_request(); text.starts_with(asked))
      text =
          fmt::format("the {} processes that {} did not all find one another: {} ([run] wireup_timeout){}",
                      launched.size, launched.who_tells(), text.substr(asked.size()),
                      launched.is_by_hand() ? ". Start a process for each rank, or unset ASSAY_RANK and ASSAY_RANKS: "
                                              "assay then starts the ranks of this machine itself"
                                            : "");
    if (const std::string why = rendezvous_->why_unreachable(); !why.empty()) text += ". " + why;
    const std::string refused = strangers_text();
    throw wireup::WireupError(refused.empty() ? text : fmt::format("{}. {}", text, refused));
  }
}

void Crew::gather(wireup::KeyValue::Timeout patience, const launch::InterruptHandler& interrupts) {
  // Whoever waits for the others hears of it, here and elsewhere.
  const StopAtSignal stop_at_signal(interrupts, [this] {
    std::vector<std::int32_t> all(static_cast<std::size_t>(launched_->size));
    std::iota(all.begin(), all.end(), 0);
    store_.lose(crew_group, all, "the run was interrupted");
  });
  const std::string own_place = to_text(place_of_this_process(launched_->local_rank));
  for (const std::string& text : store_.exchange(hello_name, 0, launched_->size, own_place, patience))
    members_.push_back(place_from(text));
}

Crew::~Crew() {
  try {
    dismiss(1);
  } catch (...) {  // out of memory: they notice that this process is gone
  }
}

std::vector<RankPlace> Crew::places(std::int32_t count) const {
  if (is_launched()) return {members_.begin(), members_.begin() + count};
  std::vector<RankPlace> all;
  for (std::int32_t r = 0; r < count; ++r) all.push_back(place_of_this_process(r));
  return all;
}

const wireup::Endpoint& Crew::endpoint() {
  if (rendezvous_) return rendezvous_->endpoint();
  if (!server_) server_ = std::make_unique<wireup::KeyValueServer>(store_, wireup::KeyValueServer::Options{});
  return server_->endpoint();
}

void Crew::give_order(const worker::CaseSpec& spec) {
  const std::int32_t rank = spec.ranks.rank;
  if (losses_.contains(rank)) return;
  store_.set(order_key(rank, orders_given_[static_cast<std::size_t>(rank)]++), to_json(spec).dump());
}

std::optional<RankReport> Crew::find_report(std::int32_t rank, const std::string& case_prefix) {
  const auto text = store_.find(case_prefix + report_key(rank));
  if (!text) return std::nullopt;
  return rank_report_from_text(*text);
}

std::optional<RankReport> Crew::find_loss(std::int32_t rank) {
  for (const wireup::Change& change : watch_->take()) {
    if (change.kind == wireup::Change::Kind::lost || change.kind == wireup::Change::Kind::left)
      losses_.emplace(change.rank, change.kind == wireup::Change::Kind::lost ? change.text : "it left");
    if (change.kind == wireup::Change::Kind::left) left_.insert(change.rank);
  }
  const auto loss = losses_.find(rank);
  if (loss == losses_.end()) return std::nullopt;
  const std::string& host = members_[static_cast<std::size_t>(rank)].host;
  return RankReport{
      rank, host, record::result_without_worker(record::Status::crashed, "its assay process is gone: " + loss->second),
      launch::FailureKind::killed};
}

std::string Crew::strangers_text() const {
  if (!rendezvous_ && !server_) return {};
  const std::string refused = rendezvous_ ? rendezvous_->strangers().text() : server_->strangers().text();
  if (refused.empty()) return {};
  const wireup::Endpoint& endpoint = rendezvous_ ? rendezvous_->endpoint() : server_->endpoint();
  return fmt::format("At port {}, where the ranks meet, {}", endpoint.port, refused);
}

void Crew::leave_behind(std::int32_t rank) {
  const std::int32_t ranks[] = {rank};
  store_.lose(crew_group, ranks, "it had not reported the end of an earlier case, and is left out from here on");
  find_loss(rank);
  // The order that it may not have read yet, and the one after that.
  std::int64_t& given = orders_given_[static_cast<std::size_t>(rank)];
  if (given > 0) store_.set(order_key(rank, given - 1), dismissal(exit_failed));
  store_.set(order_key(rank, given++), dismissal(exit_failed));
}

bool Crew::has_losses() {
  if (!is_launched()) return false;
  find_loss(0);
  return !losses_.empty();
}

std::string Crew::death() {
  if (!is_launched()) return {};
  const auto deadline = std::chrono::steady_clock::now() + wireup::vanished_after + std::chrono::seconds(1);
  for (;;) {
    find_loss(0);
    bool is_open = false;
    for (std::int32_t rank = 1; rank < size(); ++rank) {
      if (left_.contains(rank) || store_.find(farewell_key(rank))) continue;
      const auto loss = losses_.find(rank);
      if (loss != losses_.end())
        return fmt::format("the assay process of rank {} on {} is gone: {}", rank,
                           members_[static_cast<std::size_t>(rank)].host, loss->second);
      is_open = true;
    }
    if (!is_open || std::chrono::steady_clock::now() > deadline) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Crew::dismiss(int exit_code) {
  if (!is_launched() || dismissed_) return;
  dismissed_ = true;
  for (std::int32_t rank = 1; rank < size(); ++rank)
    store_.set(order_key(rank, orders_given_[static_cast<std::size_t>(rank)]++), dismissal(exit_code));
  // The service must not go before they have read it: an interrupted one first gives its worker time to leave its
  // collectives, and reaps it.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (static_cast<std::int32_t>(losses_.size()) < size() - 1 && std::chrono::steady_clock::now() < deadline) {
    find_loss(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace assay::host::run
