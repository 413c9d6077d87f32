#include "assay/train/safetensors.hpp"

#include <assay/compute/checked_size.hpp>
#include <assay/plugin.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace assay::train {

using compute::DType;
using nlohmann::json;

namespace {

constexpr std::uint64_t longest_header = 100'000'000;  // the limit of the format

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr DTypeName dtype_names[] = {{DType::f32, "F32"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
                                     {DType::i64, "I64"}, {DType::i32, "I32"},   {DType::u8, "U8"}};

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& text) {
  throw Error(ASSAY_INVALID_ARGUMENT, file.string() + ": " + text);
}
[[noreturn]] void fail_errno(const std::filesystem::path& file, const char* doing) {
  throw Error(ASSAY_INTERNAL, file.string() + ": " + doing + ": " + std::strerror(errno));
}

void write_all(int fd, const void* data, std::size_t bytes, const std::filesystem::path& file) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_errno(file, "writing");
    p += n, bytes -= static_cast<std::size_t>(n);
  }
}

// The JSON of a header, or nothing. Throws where a name stands twice, or values lie deeper than the format's: whatever
// walks a value does so by recursion, and a header may be nested a million times.
// `names_at`: how deep they lie.
json header_of(const std::filesystem::path& file, const std::string& text, int names_at = 1) {
  constexpr int deepest = 2;
  std::set<std::string> names;
  return json::parse(
      text,
      [&](int depth, json::parse_event_t event, json& value) {
        using Event = json::parse_event_t;
        if (event == Event::key && depth == names_at && !names.insert(value.get<std::string>()).second)
          fail(file, "names tensor '" + value.get<std::string>() + "' twice");
        if (depth > deepest && (event == Event::object_start || event == Event::array_start))
          fail(file, "its header has values within each other that no tensor has; is it a safetensors file?");
        return true;
      },
      /*allow_exceptions=*/false);
}

std::uint64_t whole_number(const json& value) {
  if (!value.is_number_unsigned()) throw std::invalid_argument("no whole number");
  return value.get<std::uint64_t>();
}

// The format has each byte behind the header belong to one tensor.
void require_no_gaps(const std::filesystem::path& file, const std::map<std::string, StoredTensor>& tensors,
                     std::uint64_t begin, std::uint64_t end) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, t] : tensors) ranges.emplace_back(t.offset, t.offset + t.bytes);
  std::sort(ranges.begin(), ranges.end());
  ranges.emplace_back(end, end);
  for (const auto& [first, last] : ranges) {
    if (first != begin)
      fail(file, "its tensors overlap, or leave bytes between or behind them: expected one to begin at byte " +
                     std::to_string(begin) + " of the file, found " + std::to_string(first));
    begin = last;
  }
}

std::map<std::string, StoredTensor> tensors_of(const std::filesystem::path& file) {
  std::map<std::string, StoredTensor> tensors;
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file, "cannot be opened");
  in.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(in.tellg());
  in.seekg(0);
  unsigned char length_bytes[8] = {};
  if (!in.read(reinterpret_cast<char*>(length_bytes), 8)) fail(file, "is no safetensors file: shorter than 8 bytes");
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | length_bytes[i];
  if (length > longest_header || 8 + length > size) {
    if (length_bytes[0] == '{')
      fail(file,
           "is JSON, as the index of a model in several files is; expected a safetensors file, or an index by the name "
           "of one, model.safetensors.index.json");
    fail(file, "is no safetensors file, or is cut short: its header would be " + std::to_string(length) + " bytes of " +
                   std::to_string(size));
  }
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  const json header = header_of(file, text);
  if (!header.is_object()) fail(file, "its header is no JSON object");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    StoredTensor t;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string dtype;
    try {
      dtype = entry.at("dtype").get<std::string>();
      for (const json& dim : entry.at("shape")) t.dims.push_back(static_cast<std::int64_t>(whole_number(dim)));
      const json& offsets = entry.at("data_offsets");
      begin = whole_number(offsets.at(0));
      end = whole_number(offsets.at(1));
      if (offsets.size() != 2) throw std::invalid_argument("more than two offsets");
    } catch (const std::exception&) {
      fail(file, "tensor '" + name +
                     "': malformed header entry; expected dtype, a text, shape, a list of whole numbers, and "
                     "data_offsets, two of them");
    }
    bool known = false;
    for (const DTypeName& d : dtype_names)
      if (dtype == d.name) t.dtype = d.dtype, known = true;
    if (!known) fail(file, "tensor '" + name + "' has dtype " + dtype + "; known: F32, BF16, F16, I64, I32, U8");
    // Numbers of a file: none of these sums and products may wrap.
    const std::optional<std::size_t> expected = compute::bytes_of(t.dtype, t.dims);
    if (!expected || end < begin || end - begin != *expected || end > size - 8 - length)
      fail(file, "tensor '" + name + "' claims bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                     ", which does not fit its shape or the file's size; is the file cut short?");
    t.offset = 8 + length + begin;
    t.bytes = *expected;
    tensors[name] = t;
  }
  require_no_gaps(file, tensors, 8 + length, size);
  return tensors;
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::filesystem::path file) : file_(std::move(file)) {
  if (file_.string().ends_with(".safetensors.index.json")) {
    read_index();
    return;
  }
  shards_.push_back(file_);
  tensors_ = tensors_of(file_);
}

void SafetensorsReader::read_index() {
  std::ifstream in(file_, std::ios::binary);
  if (!in) fail(file_, "cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const json index = header_of(file_, text, 2);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    fail(file_, "is no index; expected JSON with \"weight_map\", the file of each tensor by its name");
  std::map<std::string, std::size_t> shards;  // by the name of the file
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || std::filesystem::path(shard.get<std::string>()).has_parent_path())
      fail(file_,
           "the file of tensor '" + name + "' is " + shard.dump() + "; expected the name of one beside the index");
    shards.try_emplace(shard.get<std::string>(), 0);
  }
  for (auto& [name, number] : shards) {
    number = shards_.size();
    shards_.push_back(file_.parent_path() / name);
    for (auto& [tensor, stored] : tensors_of(shards_.back())) {
      const auto said = index["weight_map"].find(tensor);
      if (said == index["weight_map"].end())
        fail(file_, "has no tensor '" + tensor + "', which " + name + " has; is it the index of other files?");
      stored.shard = number;
      const auto [there, is_new] = tensors_.emplace(tensor, stored);
      if (!is_new)
        fail(file_, "tensor '" + tensor + "' is in two files, " + shards_[there->second.shard].filename().string() +
                        " and " + name + "; is one of them of another model?");
    }
  }
  for (const auto& [name, shard] : index["weight_map"].items()) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.shard != shards.at(shard.get<std::string>()))
      fail(file_,
           "says that tensor '" + name + "' is in " + shard.get<std::string>() + ", which has none of this name");
  }
}

const StoredTensor& SafetensorsReader::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(file_, "has no tensor '" + name + "'");
  return found->second;
}

std::vector<std::byte> SafetensorsReader::read(const std::string& name) const {
  const StoredTensor& t = at(name);
  std::vector<std::byte> bytes(t.bytes);
  const std::filesystem::path& file = shards_[t.shard];
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(t.offset));
  if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(t.bytes)))
    fail(file, "tensor '" + name + "' cannot be read");
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path file) : file_(std::move(file)), partial_(file_) {
  partial_ += ".partial";
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

void SafetensorsWriter::declare(const std::string& name, DType dtype, const std::vector<std::int64_t>& dims) {
  StoredTensor t{dtype, dims, 0, compute::size_of(dtype)};
  for (const std::int64_t d : dims) t.bytes *= static_cast<std::uint64_t>(d);
  t.offset = tensors_.empty() ? 0 : tensors_.back().second.offset + tensors_.back().second.bytes;
  tensors_.emplace_back(name, t);
}

void SafetensorsWriter::begin() {
  json header = json::object();
  for (const auto& [name, t] : tensors_) {
    const char* dtype = "";
    for (const DTypeName& d : dtype_names)
      if (d.dtype == t.dtype) dtype = d.name;
    header[name] = {{"dtype", dtype}, {"shape", t.dims}, {"data_offsets", {t.offset, t.offset + t.bytes}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // readers that map the file want aligned data
  std::error_code ignored;
  // Found now, and not when all is written and is to get its name.
  if (std::filesystem::is_directory(file_, ignored))
    fail(file_, "is a folder; name another file, or remove the folder");
  std::filesystem::create_directories(file_.parent_path(), ignored);
  fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_errno(partial_, "opening for writing");
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i) & 0xff);
  write_all(fd_, length, 8, partial_);
  write_all(fd_, text.data(), text.size(), partial_);
}

void SafetensorsWriter::write(const std::string& name, const void* data, std::size_t bytes) {
  if (fd_ < 0) begin();
  if (next_ >= tensors_.size() || tensors_[next_].first != name || tensors_[next_].second.bytes != bytes)
    throw Error(ASSAY_INTERNAL, file_.string() + ": tensor '" + name + "' does not come as it was declared");
  write_all(fd_, data, bytes, partial_);
  ++next_;
}

void SafetensorsWriter::finish() {
  if (fd_ < 0) begin();
  if (next_ != tensors_.size()) throw Error(ASSAY_INTERNAL, file_.string() + ": not all declared tensors were written");
  // While it is open, the destructor takes back what a failure leaves.
  if (::fsync(fd_) != 0) fail_errno(partial_, "flushing to the disk");
  std::error_code error;
  std::filesystem::rename(partial_, file_, error);
  if (error) throw Error(ASSAY_INTERNAL, file_.string() + ": " + error.message());
  if (::close(std::exchange(fd_, -1)) != 0) fail_errno(file_, "closing");
}

}  // namespace assay::train
