#include "manifest.hpp"

#include <algorithm>
#include <assay/plugin.hpp>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "crc32c.hpp"
#include "files.hpp"

namespace assay::data {

using nlohmann::json;

namespace {

constexpr const char* format_name = "assay token pairs";
constexpr int format_version = 1;
constexpr std::uint64_t bytes_of_a_shard = 128'000'000;  // about, where the number of shards is not given
constexpr const char* anew = "; remedy: name another folder, or remove this one to have the data set generated anew";

[[noreturn]] void impossible(const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, "data set: " + text); }

std::string shard_name(std::int64_t number) {
  char name[40];
  std::snprintf(name, sizeof name, "shard_%04lld.bin", static_cast<long long>(number));
  return name;
}

json parameters_of(const DatasetParameters& p) {
  return {{"samples", p.samples},
          {"sequence_length", p.shape.sequence_length},
          {"vocab_size", p.shape.vocab_size},
          {"seed", p.seed},
          {"shards", p.shards}};
}

json entry_of(const Shard& shard) { return {{"name", shard.name}, {"samples", shard.samples}, {"bytes", shard.bytes}}; }

}  // namespace

std::uint64_t Manifest::bytes() const {
  return static_cast<std::uint64_t>(parameters.samples) * parameters.shape.bytes();
}

Manifest plan(const DatasetParameters& parameters) {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  constexpr std::int64_t longest = 1 << 24;
  if (parameters.shape.sequence_length < 1 || parameters.shape.sequence_length > longest)
    impossible("sequence_length is " + number(parameters.shape.sequence_length) + "; expected 1 to " + number(longest));
  if (parameters.shape.vocab_size < 1)
    impossible("vocab_size is " + number(parameters.shape.vocab_size) + "; expected at least 1");
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(parameters.shape.bytes());
  if (parameters.samples < 1 || parameters.samples > most)
    impossible("it would have " + number(parameters.samples) + " samples; expected 1 to " + number(most));
  if (parameters.shards < 0 || parameters.shards > parameters.samples)
    impossible("it would have " + number(parameters.shards) + " shards; expected at most one for each of its " +
               number(parameters.samples) + " samples, or 0 for as many as give about 128 MB each");

  Manifest manifest{parameters, {}};
  std::int64_t& shards = manifest.parameters.shards;
  if (shards == 0)
    shards = std::clamp<std::int64_t>(
        static_cast<std::int64_t>((manifest.bytes() + bytes_of_a_shard / 2) / bytes_of_a_shard), 1, parameters.samples);
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < shards; ++i) {
    const std::int64_t samples = parameters.samples / shards + (i < parameters.samples % shards ? 1 : 0);
    manifest.shards.push_back(
        {shard_name(i), first, samples, static_cast<std::uint64_t>(samples) * parameters.shape.bytes()});
    first += samples;
  }
  return manifest;
}

std::string text_of(const Manifest& manifest) {
  json shards = json::array();
  for (const Shard& shard : manifest.shards) {
    shards.push_back(entry_of(shard));
    shards.back()["crc32c"] = crc_text(shard.crc);
  }
  const json whole = {
      {"format", format_name},
      {"version", format_version},
      {"parameters", parameters_of(manifest.parameters)},
      {"layout", "int64, little-endian; a sample is sequence_length source tokens, then as many target"},
      {"bytes", manifest.bytes()},
      {"shards", shards}};
  return whole.dump(2) + "\n";
}

Manifest parse_manifest(const std::filesystem::path& file, const std::string& text, const Manifest& expected) {
  const json found = json::parse(text, nullptr, false);
  if (!found.is_object() || found.value("format", json()) != format_name)
    refuse(file, std::string("is no manifest of a data set (expected a JSON object with \"format\": \"") + format_name +
                     "\")" + anew);
  if (found.value("version", json()) != format_version)
    refuse(file, "has format version " + found.value("version", json()).dump() + "; expected " +
                     std::to_string(format_version) + anew);
  std::string differences;
  const json found_parameters = found.value("parameters", json::object());
  const json expected_parameters = parameters_of(expected.parameters);
  for (const auto& [name, value] : expected_parameters.items()) {
    const json other = found_parameters.is_object() ? found_parameters.value(name, json()) : json();
    if (other != value)
      differences += (differences.empty() ? "" : ", ") + name + " " + other.dump() + " (expected " + value.dump() + ")";
  }
  if (!differences.empty()) refuse(file, "is of a data set with other parameters: " + differences + anew);

  Manifest manifest = expected;
  const json shards = found.value("shards", json());
  if (!shards.is_array() || shards.size() != manifest.shards.size())
    refuse(file, "lists " + (shards.is_array() ? std::to_string(shards.size()) : "no") + " shards; expected " +
                     std::to_string(manifest.shards.size()) + anew);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    Shard& shard = manifest.shards[i];
    const std::string entry = "the entry of shard " + std::to_string(i) + " is " + shards[i].dump() + "; expected ";
    json without_crc = shards[i];
    if (without_crc.is_object()) without_crc.erase("crc32c");
    if (without_crc != entry_of(shard)) refuse(file, entry + entry_of(shard).dump() + " and its crc32c" + anew);
    const json crc = shards[i].value("crc32c", json());
    const bool hexadecimal =
        crc.is_string() && crc.get_ref<const std::string&>().size() == 8 &&
        crc.get_ref<const std::string&>().find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hexadecimal) refuse(file, entry + "\"crc32c\" of eight hexadecimal digits" + anew);
    shard.crc = static_cast<std::uint32_t>(std::stoul(crc.get<std::string>(), nullptr, 16));
  }
  return manifest;
}

}  // namespace assay::data
