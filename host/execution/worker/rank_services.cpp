#include "worker/rank_services.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>

#include "launch/process.hpp"
#include "wireup/key_value_client.hpp"
#include "wireup/key_value_store.hpp"
#include "worker/plugin_messages.hpp"

namespace assay::host::worker {
namespace {

std::atomic<bool> termination_seen{false};
// The process that has sent the first SIGTERM which was not the host's; -1: one that cannot be seen from here.
std::atomic<pid_t> terminated_by{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free,
              "a signal handler stores to them");
pid_t host_pid = 0;

void take_termination(int, siginfo_t* info, void*) {
  termination_seen.store(true, std::memory_order_relaxed);
  const bool is_seen = info->si_code <= 0 && info->si_pid > 0;  // not of the kernel, nor of an outer PID namespace
  pid_t nobody = 0;
  if (!is_seen || info->si_pid != host_pid) terminated_by.compare_exchange_strong(nobody, is_seen ? info->si_pid : -1);
}

// How long a rank waits for the others in a collective.
std::chrono::milliseconds collective_timeout(const experiment::Case& c) {
  return c.run.stall_timeout.count() > 0 ? c.run.stall_timeout : c.measure.timeout;
}

std::string_view bytes_of(const void* data, std::size_t bytes) {
  return data ? std::string_view(static_cast<const char*>(data), bytes) : std::string_view();
}

// Host and plugin share the case's keys.
std::string key_of_plugin(assay_str key) { return fmt::format("plugin/{}", view_of(key)); }

std::string pack(std::span<const double> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

std::vector<double> unpack(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

}  // namespace

void take_termination_as_abort() {
  host_pid = launch::pid_of_host();
  struct sigaction action {};
  action.sa_sigaction = take_termination;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigaction(SIGTERM, &action, nullptr);
}

std::string termination_from_outside() {
  const pid_t sender = terminated_by.load(std::memory_order_relaxed);
  if (sender == 0) return "";
  std::string name;
  if (sender > 0) std::getline(std::ifstream(fmt::format("/proc/{}/comm", sender)), name);
  const std::string who = sender == getpid() ? "this rank itself"
                          : sender < 0       ? "a process that cannot be seen from here"
                          : name.empty()     ? fmt::format("process {}", sender)
                                             : fmt::format("process {} ({})", sender, name);
  return fmt::format("asked to end from outside, with SIGTERM by {}, which is not the host", who);
}

RankServices::RankServices(const CaseSpec& spec, CaseObserver& observer)
    : spec_(spec.ranks), observer_(observer), address_("127.0.0.1") {
  const std::chrono::milliseconds wireup_timeout = spec.values.run.wireup_timeout;
  if (is_alone()) {
    service_ = std::make_unique<wireup::KeyValueStore>();
  } else {
    auto client = std::make_unique<wireup::KeyValueClient>(
        spec_.service, wireup::KeyValueClient::Options{.prefix = spec_.prefix,
                                                       .member = wireup::Member{"", spec_.rank, spec_.host_name},
                                                       .connect_timeout = wireup_timeout});
    address_ = client->local_address();
    client_ = client.get();
    service_ = std::move(client);
    const Waiting waiting(observer_);
    service_->exchange("start", spec_.rank, spec_.count, "", wireup_timeout);
  }
  make_table(spec);
}

RankServices::RankServices(const CaseSpec& spec, CaseObserver& observer, std::unique_ptr<wireup::KeyValue> service)
    : spec_(spec.ranks), observer_(observer), service_(std::move(service)), address_("127.0.0.1") {
  make_table(spec);
}

void RankServices::make_table(const CaseSpec& spec) {
  library_folder_ = spec.comm_folder;
  comm_.struct_size = sizeof comm_;
  comm_.impl = this;
  comm_.rank = spec_.rank, comm_.rank_count = spec_.count;
  comm_.local_rank = spec_.local_rank, comm_.local_rank_count = spec_.local_count;
  comm_.host_name = spec_.host_name.c_str();
  comm_.address = address_.c_str();
  comm_.library_folder = library_folder_.c_str();
  comm_.timeout_ms = collective_timeout(spec.values).count();
  comm_.set = [](const assay_comm* c, assay_str key, const void* data, std::size_t bytes) noexcept {
    return from(c).answer([&](wireup::KeyValue& kv) { kv.set(key_of_plugin(key), bytes_of(data, bytes)); });
  };
  comm_.get = [](const assay_comm* c, assay_str key, std::int64_t timeout_ms, void* data, std::size_t capacity,
                 std::size_t* bytes) noexcept {
    return from(c).answer([&](wireup::KeyValue& kv) {
      const std::string value = kv.get(key_of_plugin(key), wireup::KeyValue::Timeout(timeout_ms));
      if (const std::size_t n = std::min(value.size(), capacity); n > 0) std::memcpy(data, value.data(), n);
      *bytes = value.size();
    });
  };
  comm_.add = [](const assay_comm* c, assay_str key, std::int64_t delta, std::int64_t* value) noexcept {
    return from(c).answer([&](wireup::KeyValue& kv) { *value = kv.add(key_of_plugin(key), delta); });
  };
  comm_.exchange = [](const assay_comm* c, assay_str name, std::int64_t timeout_ms, const void* mine, std::size_t bytes,
                      void* all) noexcept {
    RankServices& self = from(c);
    return self.answer([&](wireup::KeyValue& kv) {
      const std::vector<std::string> values = kv.exchange(key_of_plugin(name), self.spec_.rank, self.spec_.count,
                                                          bytes_of(mine, bytes), wireup::KeyValue::Timeout(timeout_ms));
      for (std::size_t r = 0; r < values.size(); ++r) {
        if (values[r].size() != bytes)
          throw wireup::WireupError(fmt::format("exchange '{}': rank {} gave {} bytes, this one {}", view_of(name), r,
                                                values[r].size(), bytes));
        if (bytes > 0) std::memcpy(static_cast<char*>(all) + r * bytes, values[r].data(), bytes);
      }
    });
  };
  comm_.begin_wait = [](const assay_comm* c) noexcept { from(c).observer_.begin_wait(); };
  comm_.end_wait = [](const assay_comm* c) noexcept { from(c).observer_.end_wait(); };
  comm_.aborted = [](const assay_comm* c) noexcept -> std::int32_t {
    return termination_seen.load(std::memory_order_relaxed) || from(c).given_up_.load(std::memory_order_relaxed) ? 1
                                                                                                                 : 0;
  };
}

RankServices::~RankServices() = default;

void RankServices::leave() {
  if (client_) client_->leave();
}

template <class F>
assay_status RankServices::answer(F&& f) noexcept {
  try {
    const Waiting waiting(observer_);
    f(*service_);
    return ASSAY_OK;
  } catch (const std::exception& e) {
    if (message_sink_) message_sink_(ASSAY_COMM_ERROR, e.what());
    return ASSAY_COMM_ERROR;
  }
}

std::string RankServices::next_name(std::string_view what) { return fmt::format("host/{}/{}", what, agreements_++); }

std::vector<std::string> RankServices::exchange(const std::string& name, std::string_view mine) {
  const Waiting waiting(observer_);
  return service_->exchange(name, spec_.rank, spec_.count, mine, wireup::KeyValue::without_end);
}

void RankServices::meet(std::string_view where) {
  if (!is_alone()) exchange(next_name(where), "");
}

std::vector<double> RankServices::slowest(std::span<const double> mine) {
  std::vector<double> result(mine.begin(), mine.end());
  if (is_alone()) return result;
  for (const std::string& of_rank : exchange(next_name("steps"), pack(mine))) {
    const std::vector<double> theirs = unpack(of_rank);
    if (theirs.size() != result.size())
      throw wireup::WireupError(fmt::format("a rank has measured {} steps, this one {}", theirs.size(), result.size()));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::max(result[i], theirs[i]);
  }
  return result;
}

measure::Verdict RankServices::agree(measure::Verdict mine) {
  if (is_alone()) return mine;
  const std::string key = next_name("verdict");
  if (spec_.rank == 0) {
    service_->set(key, std::to_string(static_cast<int>(mine)));
    return mine;
  }
  const Waiting waiting(observer_);
  return static_cast<measure::Verdict>(std::stoi(service_->get(key, wireup::KeyValue::without_end)));
}

double RankServices::sum_of_this_machine(double mine) {
  if (is_alone()) return mine;
  // Values travel as host name and number: equal names are one machine.
  double sum = 0;
  const std::string own = fmt::format("{}\n{}", spec_.host_name, pack(std::span(&mine, 1)));
  for (const std::string& of_rank : exchange(next_name("sum"), own)) {
    const std::size_t split = spec_.host_name.size() + 1;
    if (of_rank.compare(0, split, own, 0, split) == 0) sum += unpack(of_rank.substr(split)).front();
  }
  return sum;
}

void RankServices::check_aborted() const {
  if (!is_alone() && termination_seen.load(std::memory_order_relaxed))
    throw wireup::WireupError("the case is being ended, because another rank failed or the run was interrupted");
}

}  // namespace assay::host::worker
