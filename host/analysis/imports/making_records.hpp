// Helpers by which all formats make records.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "imports/formats.hpp"
#include "record/figures.hpp"

namespace assay::host::imports {

using Json = nlohmann::ordered_json;

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool is_blank(std::string_view text);

// Discarded where the text is no JSON, or nested too deep. NaN and Infinity, which Python writes, become null.
Json parsed_or_discarded(std::string_view text);
// Throws ImportError where the text is no JSON.
Json parsed(std::string_view text);
// A number, or a text that is one ("1.25e-06"); nothing where it is neither, or not finite.
std::optional<double> number_of(const Json& value);
std::optional<double> number_at(const Json& object, const char* key);
// A count: nothing where it is not whole, negative, or above 2^53, where doubles skip whole numbers.
std::optional<std::int64_t> count_of(std::optional<double> number);
// A size as a parameter: a count, or the text as it stands where no count holds it, so that two sizes stay two.
Value size_of(const std::string& text);
Value size_at(const Json& object, const char* key);
std::string text_at(const Json& object, const char* key);
// Whether a step can take it: above zero, and no more than 30 years.
bool is_time_ms(double ms);
// A standard deviation; nothing where it is below zero.
std::optional<double> spread_of(std::optional<double> number);
// As a parameter: a number, a bool, or a text. A whole number beyond 64 bits with a sign is a text.
std::optional<Value> value_of(const Json& value);

// Returns a number where the text is spelt as assay shows that number, and the text otherwise: "3.10" and "3.1" are two
// cases.
Value value_of_text(const std::string& text);

// The plain values of an object as parameters, those of objects within it by dotted names ("runner.gpu.name"), lists as
// their text. A name that another value has already gets `owner` before it.
void add_flat_params(const Json& object, const std::string& owner, record::Named<Value>& params);

// An `ok` record that nobody has verified, and it is not known who else used the machine.
record::CaseRecord new_record(const std::string& workload, std::size_t index);
// Makes it a failed one, without times and rates.
void fail(record::CaseRecord& record, std::string reason);
// The time of a step: of samples, or of a mean alone with what is known beside it.
record::Phase step_of_samples(const std::vector<double>& samples_ms);
record::Phase step_of_mean(double mean_ms, std::optional<double> std_ms, std::optional<std::int64_t> n);
void add_metric(record::CaseRecord& record, const std::string& name, double value, const std::string& unit,
                Direction direction);
// A bandwidth in GB/s: makes the record a failed one where it is below zero, or above what any machine has.
void add_bandwidth(record::CaseRecord& record, const std::string& name, double gbytes_per_s);
// Makes records failed whose least time is above the mean, or the mean above the most.
void fail_contradictions(std::vector<record::CaseRecord>& records);

// Cases that cannot be distinguished become repeats of one, so that none of them stands in for another; says how many.
std::size_t number_repeats(std::vector<record::CaseRecord>& records);
// Axes are the parameters that vary over the records, in their order.
void set_axes(std::vector<record::CaseRecord>& records);
// What a folder can be called by: "all_reduce (sum)" -> "all_reduce-sum".
std::string folder_name(std::string_view text);

}  // namespace assay::host::imports
