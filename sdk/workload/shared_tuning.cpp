#include "assay/workload/shared_tuning.hpp"

#include <assay/comm.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

namespace assay::workload {
namespace {

bool sharing_wanted() {
  const char* const wanted = std::getenv("ASSAY_SHARED_TUNING");
  return !wanted || std::string_view(wanted) != "0";
}

// Through the key-value service of the case's ranks: a counter for each list, and a key for each text.
class ExchangeOfRanks final : public compute::AlgorithmExchange {
 public:
  ExchangeOfRanks(const assay_comm& ranks, std::string_view name) : ranks_(ranks), name_(name) {}

  bool lead(const std::string& devices) override {
    std::int64_t asked = 0;
    check(ranks_.add(&ranks_, to_abi(list(devices)), 1, &asked));
    return asked == 1;
  }
  void put(const std::string& devices, std::int64_t index, const std::string& text) override {
    check(ranks_.set(&ranks_, to_abi(key(devices, index)), text.data(), text.size()));
  }
  std::string get(const std::string& devices, std::int64_t index) override {
    std::string text(1024, '\0');
    for (;;) {
      const std::size_t capacity = text.size();
      std::size_t bytes = 0;
      check(ranks_.get(&ranks_, to_abi(key(devices, index)), ranks_.timeout_ms, text.data(), capacity, &bytes));
      text.resize(bytes);
      if (bytes <= capacity) return text;
    }
  }

 private:
  static void check(assay_status status) {
    if (status != ASSAY_OK) throw Error(status, "");  // the host has the text
  }
  std::string list(const std::string& devices) const { return "tuning/" + name_ + "/" + devices; }
  std::string key(const std::string& devices, std::int64_t index) const {
    return list(devices) + "/" + std::to_string(index);
  }

  const assay_comm& ranks_;
  std::string name_;
};

}  // namespace

SharedTuning::SharedTuning(const Host& host, compute::Backend& backend, std::string_view name) : backend_(backend) {
  const auto* ranks = host.extension<assay_comm>(ASSAY_EXT_COMM);
  if (!ranks || ranks->rank_count < 2 || !sharing_wanted()) return;
  exchange_ = std::make_unique<ExchangeOfRanks>(*ranks, name);
  backend_.share_tuning(exchange_.get());
}

SharedTuning::~SharedTuning() {
  if (!exchange_) return;
  try {
    backend_.share_tuning(nullptr);
  } catch (...) {
    // The service that joins the ranks is gone, and with it the case; whoever waits hears so from the host.
  }
}

}  // namespace assay::workload
