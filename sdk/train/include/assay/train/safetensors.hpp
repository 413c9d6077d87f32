// The safetensors file format: an 8-byte little-endian header length, a JSON header that maps names to dtype, shape and
// byte range, then the data. (Format: huggingface/safetensors, README, "Format".)
#pragma once
#include <assay/compute/tensor.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay::train {

struct StoredTensor {
  compute::DType dtype = compute::DType::f32;
  std::vector<std::int64_t> dims;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::size_t shard = 0;  // of several files
};

// A file opened for reading, or several by their index ("model.safetensors.index.json", as Hugging Face's libraries
// write it): JSON whose "weight_map" has the name of a file beside it for each tensor. Headers are read and checked at
// once, and that the index says what they say; tensors on demand. Throws
// assay::Error(INVALID_ARGUMENT) that names the file, the tensor and what is wrong with it.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::filesystem::path file);
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor& at(const std::string& name) const;
  std::vector<std::byte> read(const std::string& name) const;
  const std::filesystem::path& file() const { return file_; }
  const std::filesystem::path& file_of(const std::string& name) const { return shards_[at(name).shard]; }

 private:
  void read_index();
  std::filesystem::path file_;
  std::vector<std::filesystem::path> shards_;  // the file itself where it is one
  std::map<std::string, StoredTensor> tensors_;
};

// Declares all tensors, then receives their bytes in the order of declaration; one tensor is in memory at a time. The
// file appears under its name only when finish() has returned.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(std::filesystem::path file);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  void declare(const std::string& name, compute::DType dtype, const std::vector<std::int64_t>& dims);
  void write(const std::string& name, const void* data, std::size_t bytes);
  void finish();

 private:
  void begin();
  std::filesystem::path file_, partial_;
  std::vector<std::pair<std::string, StoredTensor>> tensors_;
  std::size_t next_ = 0;
  int fd_ = -1;
};

}  // namespace assay::train
