// A stand-in for the service that joins ranks, where only one is there: the others answer as it does.
#pragma once
#include "wireup/key_value.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::plan {

class ImaginedRanks final : public wireup::KeyValue {
 public:
  void set(std::string_view key, std::string_view value) override { values_[std::string(key)] = value; }
  std::string get(std::string_view key, Timeout) override {
    const auto found = values_.find(std::string(key));
    if (found == values_.end())
      throw wireup::WireupError("the key '" + std::string(key) +
                                "' is another rank's to set, and a case is planned by one rank at a time");
    return found->second;
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override { return counters_[std::string(key)] += delta; }
  std::vector<std::string> exchange(std::string_view, std::int32_t, std::int32_t count, std::string_view value,
                                    Timeout) override {
    return std::vector<std::string>(static_cast<std::size_t>(count), std::string(value));
  }

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace assay::host::plan
