// TensorBoard's event files: records of length, checksum, bytes, checksum (TFRecord), each a message `Event` in the
// encoding of protocol buffers. Of its messages these fields are needed:
//   Event: wall_time 1 (double), step 2, file_version 3, summary 5     Summary: value 1, repeated
//   Value: tag 1, simple_value 2 (float), tensor 8, metadata 9        Metadata: plugin_data 1, with plugin_name 1
//   Tensor: dtype 1 (7: texts), shape 2, string_val 8
#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "common/utc.hpp"
#include "exports/exported_case.hpp"
#include "exports/formats.hpp"

namespace assay::host::exports {
namespace {

// CRC-32C.
std::uint32_t checksum(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? (value >> 1) ^ 0x82F63B78U : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((number >> 8 * i) & 0xFF);
  return bytes;
}

// TFRecord stores a checksum rotated and shifted: TensorFlow, core/lib/hash/crc32c.h, kMaskDelta.
std::string masked_checksum(std::string_view bytes) {
  return little_endian<std::uint32_t>(std::rotr(checksum(bytes), 15) + 0xA282EAD8U);
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>((number & 0x7F) | 0x80);
  return bytes + static_cast<char>(number);
}
std::string field(int number, std::string_view bytes) {
  return varint((static_cast<std::uint64_t>(number) << 3) | 2) + varint(bytes.size()) + std::string(bytes);
}
std::string field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}

class EventFile {
 public:
  explicit EventFile(double wall_s) { add(wall_s, field(3, "brain.Event:2")); }

  // Scalars are floats of 32 bits in these files.
  void scalar(const std::string& tag, std::uint64_t step, double wall_s, double value) {
    if (std::isnan(value)) return;
    const std::string figure =
        varint(2 << 3 | 5) + little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    add(wall_s, field(2, step) + field(5, field(1, field(1, tag) + figure)));
  }
  void text(const std::string& tag, double wall_s, const std::string& words) {
    const std::string tensor = field(1, 7) + field(2, "") + field(8, words);
    add(wall_s, field(5, field(1, field(1, tag) + field(8, tensor) + field(9, field(1, field(1, "text"))))));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add(double wall_s, const std::string& rest) {
    const std::string event = varint(1 << 3 | 1) + little_endian(std::bit_cast<std::uint64_t>(wall_s)) + rest;
    const std::string length = little_endian<std::uint64_t>(event.size());
    bytes_ += length + masked_checksum(length) + event + masked_checksum(event);
  }
  std::string bytes_;
};

// A table in Markdown.
std::string words_of(const record::CaseRecord& record) {
  std::string words = "| what | value |\n| --- | --- |\n";
  const auto add = [&words](const std::string& name, std::string value) {
    for (std::size_t at = 0; (at = value.find('|', at)) != value.npos; at += 2) value.insert(at, "\\");
    for (char& c : value) c = c == '\n' ? ' ' : c;
    if (!value.empty()) words += fmt::format("| {} | {} |\n", name, value);
  };
  add("workload", record.identity.workload);
  add("status", record.result.status_text());
  add("reason", record.result.reason);
  if (record.identity.ranks) add("ranks", std::to_string(*record.identity.ranks));
  if (record.result.device) add("device", record.result.device->name);
  add("host", record.host);
  for (const auto& [name, value] : record.identity.params) add(name, to_text(value));
  return words;
}

std::string bytes_of(const record::CaseRecord& record) {
  const auto started = parse_utc(record.started);
  const double begin_s = started ? std::chrono::duration<double>(started->time_since_epoch()).count() : 0.0;
  EventFile file(begin_s);
  file.text("case", begin_s, words_of(record));
  const record::CaseResult& result = record.result;
  if (result.phases)
    for (const auto& [name, phase] : *result.phases) {
      double at_s = begin_s;
      for (std::size_t i = 0; i < phase.samples_ms.size(); ++i) {
        file.scalar(name + "/ms", i, at_s, phase.samples_ms[i]);
        at_s += phase.samples_ms[i] / 1e3;
      }
      for (const auto& [statistic, ms] :
           {std::pair{"mean_ms", phase.mean_ms}, std::pair{"std_ms", phase.std_ms}, std::pair{"min_ms", phase.min_ms},
            std::pair{"p50_ms", phase.p50_ms}, std::pair{"p99_ms", phase.p99_ms}, std::pair{"max_ms", phase.max_ms}})
        if (ms) file.scalar(name + "/" + statistic, 0, begin_s, *ms);
    }
  if (result.step_metrics)
    for (const auto& [name, metric] : *result.step_metrics) {
      for (std::size_t i = 0; i < metric.samples.size(); ++i)
        file.scalar("step_metric/" + name, i, begin_s, metric.samples[i]);
      if (metric.samples.empty() && metric.mean) file.scalar("step_metric/" + name, 0, begin_s, *metric.mean);
    }
  if (result.metrics)
    for (const auto& [name, metric] : *result.metrics)
      if (!metric.word) file.scalar("metric/" + name, 0, begin_s, metric.value);
  if (result.rates)
    for (const auto& [name, rate] :
         {std::pair{"gflop_per_s", result.rates->gflop_per_s}, std::pair{"gbytes_per_s", result.rates->gbytes_per_s},
          std::pair{"items_per_s", result.rates->items_per_s}})
      if (rate) file.scalar(std::string("rate/") + name, 0, begin_s, *rate);
  if (result.memory && result.memory->peak_total_mib)
    file.scalar("memory/peak_mib", 0, begin_s, *result.memory->peak_total_mib);
  file.scalar("ok", 0, begin_s, result.is_ok() ? 1 : 0);
  return file.bytes();
}

// The name has letters, digits, dots, dashes and underscores, and is not too long for a folder.
std::string folder_of(const std::string& text) {
  constexpr std::size_t longest = 80;
  std::string name;
  for (const char c : text.substr(0, longest)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '_' || (c == '.' && !name.empty());
    name += is_plain ? c : '-';
  }
  return name.empty() ? "unnamed" : name;
}

}  // namespace

std::vector<ExportedFile> tensorboard_events(const std::vector<results::TabledRun>& runs) {
  std::vector<ExportedFile> files;
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& record : run.records) {
      const std::string repeat = record.identity.repeat ? fmt::format("-repeat-{}", *record.identity.repeat) : "";
      files.push_back(
          {fmt::format("{}/{}/{}{}-{}/events.out.tfevents.0.assay", folder_of(run.source.experiment),
                       folder_of(run.source.run), record.identity.index + 1, repeat, folder_of(name_of(record))),
           bytes_of(record)});
    }
  return files;
}

}  // namespace assay::host::exports
