// The keys of a site file, a row for each: its table, what fits there, and where the value goes. A kind of site has
// keys that it shares with others, and keys that it has alone.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "batch/site.hpp"
#include "common/value.hpp"
#include "experiment/setting_kinds.hpp"

namespace assay::host::batch {

struct SiteKey {
  std::string section, key;  // "slurm.limits", "attempts"
  std::string expected;
  bool is_list = false;
  std::function<bool(const Value&, Site&)> store;  // one value, or one element of a list; false when it does not fit
};

// The rows of site_keys.cpp by their names: "time_max", "limits.margin", or a table: "health".
std::vector<SiteKey> shared_keys(const std::string& kind, std::initializer_list<const char*> names);

// The keys of one kind, in the order in which messages list them.
template <class Settings>
class SiteKeys {
 public:
  explicit SiteKeys(std::string kind) : kind_(std::move(kind)) {}

  SiteKeys& shared(std::initializer_list<const char*> names) {
    for (SiteKey& row : shared_keys(kind_, names)) rows_.push_back(std::move(row));
    return *this;
  }
  template <class T, class Of>
  SiteKeys& alone(std::string key, experiment::Kind<T> kind, T Of::*member) {
    rows_.push_back({kind_, std::move(key), kind.expected, false, [kind, member](const Value& found, Site& site) {
                       auto value = kind.read(found);
                       if (value) std::get<Settings>(site.settings).*member = *value;
                       return value.has_value();
                     }});
    return *this;
  }
  template <class Of>
  SiteKeys& list_alone(std::string key, experiment::Kind<std::string> kind, std::vector<std::string> Of::*member) {
    rows_.push_back(
        {kind_, std::move(key), "an array of " + kind.expected, true, [kind, member](const Value& found, Site& site) {
           auto value = kind.read(found);
           if (value) (std::get<Settings>(site.settings).*member).push_back(*value);
           return value.has_value();
         }});
    return *this;
  }
  std::vector<SiteKey> rows() const { return rows_; }

 private:
  std::string kind_;
  std::vector<SiteKey> rows_;
};

// Kinds of values that become words of scripts.
using TextKind = experiment::Kind<std::string>;
TextKind word_kind(std::string expected);  // of an option, or a name in one: no blank, no quote, nothing for a shell
TextKind option_kind();                    // begins with '-'
TextKind shell_option_kind();              // options that a script has as they are, on a line of its shell
TextKind line_kind();                      // of a script
inline constexpr const char* plain_name = "a name without blanks or quotes";

}  // namespace assay::host::batch
