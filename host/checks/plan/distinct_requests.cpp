#include "plan/distinct_requests.hpp"

#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>

namespace assay::host::plan {
namespace {

// Bytes, since text of tens of parameters would take longer than all the rest. A text has its length before it, so that
// no value ends another one.
class Key {
 public:
  template <class Number>
  void add(const Number& number) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string key_of(const WalkRequest& request) {
  const experiment::Case& c = request.values;
  Key key;
  key.add(request.ranks);
  key.add(c.run.seed);
  key.add(c.measure.prepare);
  key.add(c.run.stall_timeout.count());
  key.add(c.measure.timeout.count());
  for (const auto& [name, value] : c.params) {
    key.add(name);
    key.add(value.index());
    std::visit([&key](const auto& v) { key.add(v); }, value);
  }
  return key.bytes();
}

}  // namespace

DistinctRequests distinct_among(const std::vector<WalkRequest>& requests) {
  DistinctRequests distinct;
  std::unordered_map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto [place, is_new] = known.emplace(key_of(requests[i]), distinct.first.size());
    if (is_new) distinct.first.push_back(i);
    distinct.kind.push_back(place->second);
  }
  return distinct;
}

}  // namespace assay::host::plan
