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
#include <utility>

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
void append_little_endian(std::string& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((number >> 8 * i) & 0xFF);
}

// TFRecord stores a checksum rotated and shifted: TensorFlow, core/lib/hash/crc32c.h, kMaskDelta.
void append_masked_checksum(std::string& to, std::string_view bytes) {
  append_little_endian<std::uint32_t>(to, std::rotr(checksum(bytes), 15) + 0xA282EAD8U);
}

void append_varint(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>((number & 0x7F) | 0x80);
  bytes += static_cast<char>(number);
}
void append_field(std::string& to, std::uint64_t number, std::string_view bytes) {
  append_varint(to, number << 3 | 2);
  append_varint(to, bytes.size());
  to += bytes;
}
void append_field(std::string& to, std::uint64_t number, std::uint64_t value) {
  append_varint(to, number << 3);
  append_varint(to, value);
}
std::string field(std::uint64_t number, std::string_view bytes) {
  std::string text;
  append_field(text, number, bytes);
  return text;
}

// A run of many cases has millions of scalars: the parts of one are put together in memory that the next one uses, too.
class EventFile {
 public:
  explicit EventFile(double wall_s) {
    rest_ = field(3, "brain.Event:2");
    add(wall_s);
  }

  // Scalars are floats of 32 bits in these files.
  void scalar(std::string_view tag, std::uint64_t step, double wall_s, double value) {
    if (std::isnan(value)) return;
    value_.clear();
    append_field(value_, 1, tag);
    append_varint(value_, 2 << 3 | 5);
    append_little_endian(value_, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    rest_.clear();
    append_field(rest_, 2, step);
    append_summary();
    add(wall_s);
  }
  void text(const std::string& tag, double wall_s, const std::string& words) {
    std::string tensor;
    append_field(tensor, 1, std::uint64_t{7});
    append_field(tensor, 2, std::string_view());
    append_field(tensor, 8, words);
    value_ = field(1, tag) + field(8, tensor) + field(9, field(1, field(1, "text")));
    rest_.clear();
    append_summary();
    add(wall_s);
  }
  std::string take_bytes() { return std::move(bytes_); }

 private:
  // A summary here has one value.
  void append_summary() {
    summary_.clear();
    append_field(summary_, 1, value_);
    append_field(rest_, 5, summary_);
  }
  // An event of `rest_`.
  void add(double wall_s) {
    event_.clear();
    append_varint(event_, 1 << 3 | 1);
    append_little_endian(event_, std::bit_cast<std::uint64_t>(wall_s));
    event_ += rest_;
    length_.clear();
    append_little_endian<std::uint64_t>(length_, event_.size());
    bytes_ += length_;
    append_masked_checksum(bytes_, length_);
    bytes_ += event_;
    append_masked_checksum(bytes_, event_);
  }
  std::string bytes_, length_, event_, rest_, summary_, value_;
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
      const std::string tag = name + "/ms";
      for (std::size_t i = 0; i < phase.samples_ms.size(); ++i) {
        file.scalar(tag, i, at_s, phase.samples_ms[i]);
        at_s += phase.samples_ms[i] / 1e3;
      }
      for (const auto& [statistic, ms] :
           {std::pair{"mean_ms", phase.mean_ms}, std::pair{"std_ms", phase.std_ms}, std::pair{"min_ms", phase.min_ms},
            std::pair{"p50_ms", phase.p50_ms}, std::pair{"p99_ms", phase.p99_ms}, std::pair{"max_ms", phase.max_ms}})
        if (ms) file.scalar(name + "/" + statistic, 0, begin_s, *ms);
    }
  if (result.step_metrics)
    for (const auto& [name, metric] : *result.step_metrics) {
      const std::string tag = "step_metric/" + name;
      for (std::size_t i = 0; i < metric.samples.size(); ++i) file.scalar(tag, i, begin_s, metric.samples[i]);
      if (metric.samples.empty() && metric.mean) file.scalar(tag, 0, begin_s, *metric.mean);
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
  return file.take_bytes();
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
