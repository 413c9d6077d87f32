#include "run/follower.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "launch/signals.hpp"
#include "run/crew_keys.hpp"
#include "run/group_request.hpp"
#include "run/output_files.hpp"
#include "run/rank_place.hpp"
#include "run/rank_report.hpp"
#include "run/stop_at_signal.hpp"
#include "run/taken_files.hpp"
#include "wireup/rendezvous.hpp"

namespace assay::host::run {
namespace {

// Waits on the side for one key, and keeps what it says.
class KeyWatcher {
 public:
  KeyWatcher(const wireup::Endpoint& endpoint, const std::string& key)
      : client_(endpoint, {}), thread_([this, key] { wait(key); }) {}
  ~KeyWatcher() {
    client_.stop();
    thread_.join();
  }
  KeyWatcher(const KeyWatcher&) = delete;
  KeyWatcher& operator=(const KeyWatcher&) = delete;

  std::optional<std::string> seen() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  void wait(const std::string& key) {
    std::string value;
    try {
      value = client_.get(key, wireup::KeyValue::without_end);
    } catch (const wireup::WireupError& e) {
      value = e.what();  // stopped, and nobody asks any more; or rank 0 is gone, which ends the case as well
    }
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
  }

  wireup::KeyValueClient client_;
  mutable std::mutex mutex_;
  std::optional<std::string> value_;
  std::thread thread_;
};

// Reports to the leader that this process was asked to end, over a connection that the end of all waits leaves open.
class Farewell {
 public:
  void know(const wireup::Endpoint& endpoint, std::int32_t rank) {
    auto client = std::make_unique<wireup::KeyValueClient>(
        endpoint, wireup::KeyValueClient::Options{.answer_margin = std::chrono::seconds(1)});
    const std::lock_guard lock(mutex_);
    client_ = std::move(client), rank_ = rank;
  }
  void say() noexcept {
    const std::lock_guard lock(mutex_);
    try {
      if (client_) client_->set(farewell_key(rank_), "asked to end");
    } catch (const std::exception&) {  // a leader that is gone misses nobody
    }
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<wireup::KeyValueClient> client_;
  std::int32_t rank_ = 0;
};

// Whether the leader has gone on without this rank meanwhile: an order may be read late.
bool is_over(wireup::KeyValueClient& service, const std::string& prefix) {
  try {
    service.get(abort_key(prefix), wireup::KeyValue::Timeout(0));
    return true;
  } catch (const wireup::WireupError&) {  // it goes on, or the service is gone, which the next call says
    return false;
  }
}

// Runs this rank of a case, and reports what became of it unless the run was interrupted.
void carry_out(const worker::CaseSpec& spec, FollowedFiles& files, const launch::InterruptHandler& interrupts,
               wireup::KeyValueClient& service) {
  if (is_over(service, spec.ranks.prefix)) return;
  RankReport report{spec.ranks.rank, spec.ranks.host_name, {}, launch::FailureKind::died};
  try {
    const worker::CaseSpec seen = files.seen_from_here(spec);
    const KeyWatcher abort(service.endpoint(), abort_key(spec.ranks.prefix));
    const std::vector<worker::CaseSpec> here = {seen};
    launch::GroupRequest request = group_request(here, interrupts);
    request.poll_outside = [&] { return abort.seen(); };
    const auto begin = std::chrono::steady_clock::now();
    const launch::GroupOutcome outcome = launch::supervise_group(request, {}, interrupts.count());
    remove_half_written(here);
    if (outcome.interrupted) return;
    report = reports_of(outcome, here, begin).front();
  } catch (const launch::LaunchError& e) {
    report.result = record::result_without_worker(record::Status::failed, e.what());
  } catch (const plugin::PluginError& e) {
    report.result = record::result_without_worker(record::Status::failed, e.what());
  } catch (const std::system_error& e) {
    report.result = record::result_without_worker(record::Status::failed, e.what());
  } catch (const StorageError& e) {
    report.result = record::result_without_worker(record::Status::failed, e.what());
  }
  service.set(spec.ranks.prefix + report_key(spec.ranks.rank), to_text(report));
}

}  // namespace

int follow(const wireup::LaunchedRank& launched, const std::filesystem::path& rendezvous_folder,
           wireup::KeyValue::Timeout patience) {
  launch::InterruptHandler interrupts;
  try {
    const RankPlace place = place_of_this_process(launched.local_rank);
    const auto stop = std::make_shared<wireup::StopFlag>();
    Farewell farewell;
    const StopAtSignal stop_at_signal(interrupts, [stop, &farewell] {
      farewell.say();
      stop->raise();
    });
    const std::unique_ptr<wireup::KeyValueClient> client =
        wireup::meet_rank0(launched, rendezvous_folder,
                           {.member = wireup::Member{crew_group, launched.rank, place.host}, .stop = stop}, patience);
    farewell.know(client->endpoint(), launched.rank);
    client->exchange(hello_name, launched.rank, launched.size, to_text(place), patience);
    FollowedFiles files;
    for (std::int64_t number = 0;; ++number) {
      const nlohmann::json text =
          nlohmann::json::parse(client->get(order_key(launched.rank, number), wireup::KeyValue::without_end));
      if (const auto exit_code = dismissal_in(text)) {
        client->leave();
        return *exit_code;
      }
      carry_out(worker::case_spec_from_json(text), files, interrupts, *client);
    }
  } catch (const std::exception& e) {
    if (interrupts.count()->load() > 0) return exit_interrupted;
    const std::string named = fmt::format("rank {} of {}", launched.rank, launched.size);
    const std::string what = without_names(e.what());
    fmt::print(stderr, "assay: {}\n", what.starts_with(named) ? what : named + ": " + what);
    return exit_failed;
  }
}

}  // namespace assay::host::run
