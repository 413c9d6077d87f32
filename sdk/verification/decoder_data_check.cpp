#include "assay/verification/decoder_data_check.hpp"

#include <algorithm>
#include <assay/train/safetensors.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "counter_random.hpp"

namespace assay::verification {

namespace {

// What numbers of a batch are drawn from. Parameters have the streams from 0 on.
constexpr std::uint64_t stream_of_tokens = 1'000'001, stream_of_labels = 1'000'002;

struct Rows {
  std::int64_t first, count;  // of the batch of all ranks
};
Rows rows_of(const models::DecoderTrainerConfig& c) {
  const std::int64_t count = c.model.accumulation_steps * c.model.batch_size * c.model.context_length;
  return {c.data_rank * count, count};
}

// Of the batch's rows those that the rank has: where ranks share out the sequences, of each the chunk that its number
// counts from the beginning, and the one that it counts from the end.
std::vector<std::int64_t> own_of(const models::DecoderTrainerConfig& c, std::vector<std::int64_t> batch) {
  const std::int64_t chunks = 2 * c.model.context.ranks, rank = c.model.context.rank;
  if (chunks == 2) return batch;
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::int64_t token = static_cast<std::int64_t>(i) % c.model.context_length;
    const std::int64_t chunk = token * chunks / c.model.context_length;
    if (std::min(chunk, chunks - 1 - chunk) == rank) own.push_back(batch[i]);
  }
  return own;
}

std::vector<std::int64_t> drawn(const models::DecoderTrainerConfig& c, std::uint64_t stream) {
  const Rows rows = rows_of(c);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < rows.count; ++i)
    numbers.push_back(random_integer(c.seed, stream, rows.first + i, c.model.vocab_size));
  return own_of(c, std::move(numbers));
}

// A label of the last token of a document, unless it ends its sequence, counts for nothing.
std::vector<std::int64_t> within_documents(const models::DecoderTrainerConfig& c, std::vector<std::int64_t> labels) {
  const std::vector<std::int64_t>& documents = c.model.documents;
  for (std::size_t i = 0; i < labels.size() && !documents.empty(); ++i) {
    std::int64_t behind = static_cast<std::int64_t>(i) % c.model.context_length + 1;
    for (auto d = documents.begin(); d + 1 < documents.end() && behind > 0; ++d)
      if ((behind -= *d) == 0) labels[i] = -1;
  }
  return labels;
}

std::vector<std::int64_t> read(const models::DecoderTrainerConfig& c, const char* name) {
  const Rows rows = rows_of(c);
  const std::vector<std::byte> bytes = train::SafetensorsReader(c.inputs_file).read(name);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows.count));
  const std::size_t begin = static_cast<std::size_t>(rows.first) * sizeof numbers[0];
  if (bytes.size() < begin + numbers.size() * sizeof numbers[0]) return {};
  std::memcpy(numbers.data(), bytes.data() + begin, numbers.size() * sizeof numbers[0]);
  return own_of(c, std::move(numbers));
}

// "token 3 is 5, expected 7"; "" where all are equal.
std::string first_difference(const char* what, const std::vector<std::int64_t>& found,
                             const std::vector<std::int64_t>& expected) {
  if (found.size() != expected.size())
    return "there are " + std::to_string(found.size()) + " " + what + "s, expected " + std::to_string(expected.size());
  const auto [f, e] = std::mismatch(found.begin(), found.end(), expected.begin());
  if (f == found.end()) return "";
  return std::string(what) + " " + std::to_string(f - found.begin()) + " is " + std::to_string(*f) + ", expected " +
         std::to_string(*e);
}

}  // namespace

std::string wrong_data_of(const models::DecoderTrainer& trainer) {
  const models::DecoderTrainerConfig& c = trainer.config();
  const bool are_drawn = c.inputs_file.empty();
  const auto numbers_of = [&](const compute::Tensor& t) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(t.elements()));
    trainer.backend().synchronize();
    trainer.backend().download(numbers.data(), t);
    return numbers;
  };
  const std::vector<std::int64_t> labels =
      are_drawn ? within_documents(c, drawn(c, stream_of_labels)) : read(c, "labels");
  std::string wrong = first_difference("token", numbers_of(trainer.inputs()),
                                       are_drawn ? drawn(c, stream_of_tokens) : read(c, "input_ids"));
  if (wrong.empty()) wrong = first_difference("label", numbers_of(trainer.labels()), labels);
  const std::int64_t valid = std::count_if(labels.begin(), labels.end(), [](std::int64_t l) { return l >= 0; });
  if (wrong.empty() && trainer.valid_rows() != valid)
    wrong = "the loss is the mean over " + std::to_string(trainer.valid_rows()) + " labels, expected " +
            std::to_string(valid);
  return wrong;
}

std::string checked_data_text(const models::DecoderTrainer& trainer) {
  return std::to_string(trainer.config().model.step_rows()) + " tokens and labels as " +
         (trainer.config().inputs_file.empty() ? "the seed says; " : "the file has them; ");
}

std::string check_data(const models::DecoderTrainer& trainer) {
  if (const std::string wrong = wrong_data_of(trainer); !wrong.empty())
    throw Error(ASSAY_WRONG_RESULT, "the batch is not what the experiment says: " + wrong);
  return checked_data_text(trainer);
}

}  // namespace assay::verification
