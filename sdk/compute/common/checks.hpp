// Argument checks that the backends share. Compiled into each backend with ASSAY_DEVICE_LABEL, what its messages call
// the device: "CPU", "GPU".
#pragma once
#include <assay/compute/backend.hpp>

#include <initializer_list>
#include <string>
#include <vector>

namespace assay::compute {

// All throw assay::Error(ASSAY_UNSUPPORTED or ASSAY_INVALID_ARGUMENT) that names the operation.
[[noreturn]] void reject(const char* operation, const std::string& what);   // UNSUPPORTED
[[noreturn]] void invalid(const char* operation, const std::string& what);  // INVALID_ARGUMENT
void require_float(const char* operation, const Tensor& t);                 // a type that the device computes in
void require_dtype(const char* operation, const Tensor& t, std::initializer_list<DType> allowed);
void require_same_shape(const char* operation, const Tensor& a, const Tensor& b);
void require_contiguous(const char* operation, const Tensor& t);
void require_rank(const char* operation, const Tensor& t, int rank);
void require_like(const char* operation, const Tensor& first, const Tensor& other);  // contiguous, its type and shape

// `count` elements; `of_what` says which, in the message.
void require_count(const char* operation, const char* name, const Tensor& t, std::int64_t count, const char* of_what);

void require_some_columns(const char* operation, const Tensor& x);
// One number, in device memory.
inline constexpr const char* step_text = "the number of this step";
void require_number(const char* operation, const char* name, const Tensor& t, const char* of_what);   // fp32
void require_counter(const char* operation, const char* name, const Tensor& t, const char* of_what);  // i64

// Where nothing is dropped, the step is not looked at.
void require_dropout(const char* operation, const Dropout& dropout);

// Of a result of `rows` by `columns`; one of the two is there.
void require_eight_bits(const char* operation, const op::EightBitRows& eight_bits, std::int64_t rows,
                        std::int64_t columns);
void require_some_result(const char* operation, const char* name, const Tensor& result,
                         const op::EightBitRows& eight_bits);

// ---- of normalisations: x is [rows, columns] ----
void require_columns(const char* operation, const char* name, const Tensor& t, std::int64_t columns);
void require_statistic(const char* operation, const char* name, const Tensor& t, std::int64_t rows);
void require_gradient(const char* operation, const char* name, const Tensor& x, const Tensor& t);

// A tensor as rows: all dimensions but the last, flattened. The last is contiguous, and one stride leads from row to
// row; anything else is rejected.
struct Rows {
  std::int64_t count, width, stride;  // stride in elements
};
Rows as_rows(const char* operation, const Tensor& t);

std::string shape_text(const Tensor& t);  // "fp32 [2, 3]"

// ---- feeds ----
std::size_t feed_slot_step(std::size_t slots, std::size_t bytes_per_slot,
                           const void* device_memory);  // from twin to twin
void require_feed_slot(const char* operation, std::size_t slot, std::size_t slots);
void require_delivery(const Tensor& to, std::size_t bytes_per_slot);

// Which slots of a feed were sent, and not delivered since: a delivery before its send would give what lay there
// before.
class SentSlots {
 public:
  explicit SentSlots(std::size_t slots) : is_sent_(slots, false) {}
  void send(std::size_t slot) { is_sent_[slot] = true; }  // a slot that there is
  void deliver(std::size_t slot);                         // INVALID_ARGUMENT: it was not sent

 private:
  std::vector<bool> is_sent_;
};

}  // namespace assay::compute
