// The conformance suite runs every operation of one compute backend against a float64 reference.
//
// The backend is whatever library ASSAY_TEST_DEVICE names (default: the CPU's, as built). Nothing here reads device
// memory: data goes up and down through the backend, so that the same tests serve a device with its own memory.
// A test makes inputs that are exact in their type, computes the reference from the same numbers in double, runs the
// operation as a workload would (prepare, give workspace, execute), and hands both to check().
#pragma once
#include <gtest/gtest.h>
#include <assay/compute/audited_backend.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace assay::conformance {

namespace op = compute::op;

using compute::DType;
using compute::Mode;
using compute::Tensor;
using Values = std::vector<double>;
using Shape = std::vector<std::int64_t>;

// The opened library, device and backend: one of each for the whole program.
class Session {
 public:
  static Session& get();
  static void end();  // before the program's
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const assay_device_api& api() const { return *api_; }
  assay_device* device() const { return device_; }
  void* stream() const { return stream_; }
  compute::Backend& backend() const { return audited_ ? *audited_ : *backend_; }
  const compute::BackendFactory& factory() const { return *factory_; }

 private:
  static std::unique_ptr<Session>& instance();
  Session();
  void* library_ = nullptr;
  const assay_device_api* api_ = nullptr;
  assay_device* device_ = nullptr;
  void* stream_ = nullptr;
  const compute::BackendFactory* factory_ = nullptr;
  std::unique_ptr<compute::Backend> backend_;
  // With ASSAY_TEST_AUDIT=1: the whole suite shows that the audit finds nothing where nothing is wrong.
  std::unique_ptr<compute::Backend> audited_;
};

bool is_cuda();  // the backend under test

inline compute::Backend& backend() { return Session::get().backend(); }

// Device memory that ends with the object.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();
  void* data() const { return address_; }

 private:
  void* address_ = nullptr;
};

// A contiguous tensor with its own memory. Converts to Tensor; views of it (slice, transposed, view) share memory.
class DeviceTensor {
 public:
  DeviceTensor(DType dtype, const Shape& shape);  // every byte 0xff: NaN, -1: what an operation misses shows
  DeviceTensor(DType dtype, const Shape& shape, const Values& values);
  operator const Tensor&() const { return tensor_; }
  const Tensor& tensor() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }

  Values read() const;
  // The elements of a view of this tensor, in the view's row-major order.
  Values read(const Tensor& view) const;
  void write(const Values& values) const;  // all elements, in memory order

 private:
  Buffer buffer_;
  Tensor tensor_;
};

Tensor contiguous(void* data, DType dtype, const Shape& shape);

// ---- host data -----------------------------------------------------------------------------------------------------

double rounded(DType dtype, double value);  // to the nearest number that the type has
Values rounded(DType dtype, Values values);
// Normal numbers, exact in `dtype`, the same in every run; another `salt` gives other numbers.
Values random_values(DType dtype, std::int64_t count, std::uint64_t salt, double mean = 0.0, double std = 1.0);
Values random_ids(std::int64_t count, std::uint64_t salt, std::int64_t low, std::int64_t high);  // in [low, high)
std::int64_t elements(const Shape& shape);

// The floating-point types that operations serve on the backend under test: fp32 and bf16, on cuda also fp16.
const std::vector<DType>& float_types();

// ---- running -------------------------------------------------------------------------------------------------------

// As a workload does: once in prepare mode, then with the workspace that was asked for. Returns when the work is done.
void run(const std::function<void()>& call);

// Runs the call twice as above; the number of heap allocations that the second execution made, in any library.
std::uint64_t allocations_in_second(const std::function<void()>& call);

// ---- comparing -----------------------------------------------------------------------------------------------------

// max over elements of |got - ref| / (|ref| + rms(ref)); infinite when sizes differ or anything is not finite.
double relative_error(const Values& got, const Values& reference);

// Expects relative_error <= tolerance, and notes the error under (operation, dtype) for the table at the end.
void check(const std::string& operation, DType dtype, const Values& got, const Values& reference, double tolerance);

// fp32: `fp32`; bf16: 2^-8 (one rounding of the result, relative) unless a test says otherwise; fp16 has three bits
// more.
inline double tolerance_of(DType dtype, double fp32, double bf16 = 0.00390625) {
  return dtype == DType::f32 ? fp32 : dtype == DType::bf16 ? bf16 : bf16 / 8;
}

// Central differences of `loss` by each element of `point`, in double.
Values numerical_gradient(const std::function<double(const Values&)>& loss, Values point, double step = 1e-5);

// Calls expect to be refused: the status, or ASSAY_OK when nothing was thrown; `text` receives the message.
assay_status status_of(const std::function<void()>& call, std::string* text = nullptr);

}  // namespace assay::conformance
