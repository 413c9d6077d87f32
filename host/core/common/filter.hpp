// A condition of --filter: "size=small", "strategy=flat,naive", "size!=large", "context_length<=512".
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::host {

enum class Relation : std::uint8_t { equal, unequal, less, less_or_equal, greater, greater_or_equal };

// A text that is no condition. The words say what was expected.
class FilterSyntaxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Filter {
  std::string key;
  Relation relation = Relation::equal;
  std::string raw;                  // all that stands after the relation
  std::vector<std::string> values;  // of equal and unequal: what stands between the commas of `raw`
  double bound = 0;                 // of the others: `raw` as a number

  bool is_ordering() const { return relation != Relation::equal && relation != Relation::unequal; }
  // For an ordering: whether a number is on the right side of the bound.
  bool holds(double number) const;
};

// `named`: what stands on the left, for the message: "key", "column". Throws FilterSyntaxError.
Filter parse_filter(const std::string& text, const char* named);

// The whole text as a finite number; nothing where it is no number.
std::optional<double> number_in(const std::string& text);

}  // namespace assay::host
