#include "harness.hpp"

#include <dlfcn.h>
#include <assay/compute/eight_bit.hpp>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

#include "allocation_count.hpp"

namespace assay::conformance {
namespace {

void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

std::uint32_t bits_of(float f) { return std::bit_cast<std::uint32_t>(f); }

// Round to nearest, ties to even, of the exact double: through float would round twice.
double round_to_bits(double value, int mantissa_bits, int least_exponent) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least_exponent);
  const double quantum = std::ldexp(1.0, exponent - mantissa_bits);
  return std::nearbyint(value / quantum) * quantum;
}

std::uint16_t half_bits(double exact) {  // `exact` is a number that fp16 has
  const std::uint16_t sign = std::signbit(exact) ? 0x8000 : 0;
  const double magnitude = std::fabs(exact);
  if (std::isnan(exact)) return 0x7e00;
  if (magnitude > 65504.0) return sign | 0x7c00;
  if (magnitude < std::ldexp(1.0, -14))
    return static_cast<std::uint16_t>(sign | std::lround(std::ldexp(magnitude, 24)));
  const int exponent = std::ilogb(magnitude);
  const auto mantissa = static_cast<std::uint16_t>(std::lround(std::ldexp(magnitude, 10 - exponent)) - 1024);
  return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | mantissa);
}

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

template <class T>
void put(unsigned char* target, T value) {
  std::memcpy(target, &value, sizeof value);
}
template <class T>
T get(const unsigned char* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

double decode(DType dtype, const unsigned char* source);

// A value that the format has; a test would not write another one.
unsigned char eight_bits(DType dtype, double value) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto code = static_cast<unsigned char>(bits);
    if (decode(dtype, &code) == value && std::signbit(decode(dtype, &code)) == std::signbit(value)) return code;
  }
  throw std::invalid_argument("no number of 8 bits: " + std::to_string(value));
}

void encode(DType dtype, double value, unsigned char* target) {
  const double exact = rounded(dtype, value);
  switch (dtype) {
    case DType::f32: put(target, static_cast<float>(exact)); break;
    case DType::bf16: put(target, static_cast<std::uint16_t>(bits_of(static_cast<float>(exact)) >> 16)); break;
    case DType::f16: put(target, half_bits(exact)); break;
    case DType::i64: put(target, static_cast<std::int64_t>(value)); break;
    case DType::i32: put(target, static_cast<std::int32_t>(value)); break;
    case DType::u8: put(target, static_cast<std::uint8_t>(value)); break;
    case DType::f8_e4m3:
    case DType::f8_e5m2: *target = eight_bits(dtype, value); break;
  }
}

double decode(DType dtype, const unsigned char* source) {
  switch (dtype) {
    case DType::f32: return get<float>(source);
    case DType::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(source)) << 16);
    case DType::f16: return half_value(get<std::uint16_t>(source));
    case DType::i64: return static_cast<double>(get<std::int64_t>(source));
    case DType::i32: return get<std::int32_t>(source);
    case DType::u8: return *source;
    case DType::f8_e4m3: return compute::E4m3::to_float(*source);
    case DType::f8_e5m2: return compute::E5m2::to_float(*source);
  }
  return 0.0;
}

// ---- the table of worst errors -------------------------------------------------------------------------------------

struct Worst {
  double error = 0.0, tolerance = 0.0;
  int checks = 0;
};
using ErrorTable = std::map<std::pair<std::string, std::string>, Worst>;
ErrorTable& error_table() {
  static ErrorTable table;
  return table;
}

class TablePrinter : public ::testing::Environment {
 public:
  void TearDown() override {
    if (error_table().empty()) return;
    std::string text =
        "| operation | dtype | worst relative error | tolerance | checks |\n| --- | --- | --- | --- | --- |\n";
    for (const auto& [key, worst] : error_table()) {
      char row[256];
      std::snprintf(row, sizeof row, "| %s | %s | %.2e | %.2e | %d |\n", key.first.c_str(), key.second.c_str(),
                    worst.error, worst.tolerance, worst.checks);
      text += row;
    }
    std::fputs(text.c_str(), stdout);
    const char* const path = std::getenv("ASSAY_CONFORMANCE_TABLE");
    if (!path || !*path) return;
    std::ofstream out(path);
    out << "# Worst errors of the " << backend().kind() << " backend\n\n"
        << "|got - ref| / (|ref| + rms(ref)), against float64.\n\n"
        << text;
    EXPECT_TRUE(out.good()) << "the table was not written to " << path
                            << "; set ASSAY_CONFORMANCE_TABLE to a writable file";
  }
};

// ---- the device library --------------------------------------------------------------------------------------------

struct DeviceFile {
  std::string path;
  void* library;
  const assay_device_api* api;
};

DeviceFile open_device_file() {
  const char* path = std::getenv("ASSAY_TEST_DEVICE");
  if (!path || !*path) path = ASSAY_DEFAULT_TEST_DEVICE;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  require(library, std::string("open the device library: ") + (library ? "" : dlerror()));
  const auto* const api = static_cast<const assay_device_api*>(dlsym(library, ASSAY_DEVICE_SYMBOL));
  require(api, std::string(path) + " exports no " ASSAY_DEVICE_SYMBOL);
  require(api->abi_major == ASSAY_DEVICE_ABI_MAJOR, std::string(path) + " is of another device ABI");
  return {path, library, api};
}

// Why there is nothing to test on this machine, in the device library's own words; empty where there is a device.
std::string why_no_device() {
  const DeviceFile file = open_device_file();
  std::int32_t count = 0;
  const assay_status status = file.api->count(&count);
  const std::string text = status == ASSAY_OK ? "there are " + std::to_string(count) : file.api->error_text();
  dlclose(file.library);
  require(status == ASSAY_OK || status == ASSAY_UNSUPPORTED, "count the devices: " + text);
  return status == ASSAY_OK && count > 0 ? "" : text;
}

}  // namespace

bool is_cuda() { return std::string_view(backend().kind()) == "cuda"; }

const std::vector<DType>& float_types() {
  static const std::vector<DType> types =
      is_cuda() ? std::vector{DType::f32, DType::bf16, DType::f16} : std::vector{DType::f32, DType::bf16};
  return types;
}

// ---- session and memory --------------------------------------------------------------------------------------------

std::unique_ptr<Session>& Session::instance() {
  static std::unique_ptr<Session> session;
  return session;
}

Session& Session::get() {
  if (!instance()) instance().reset(new Session);
  return *instance();
}

void Session::end() { instance().reset(); }

Session::Session() {
  const DeviceFile file = open_device_file();
  const std::string& path = file.path;
  library_ = file.library;
  api_ = file.api;
  require(api_->open(0, &device_) == ASSAY_OK, std::string("open device 0: ") + api_->error_text());
  require(api_->stream_create(device_, &stream_) == ASSAY_OK, std::string("create a stream: ") + api_->error_text());
  factory_ = static_cast<const compute::BackendFactory*>(api_->get_extension("assay.compute/1"));
  require(factory_, std::string(path) + " offers no assay.compute/1");
  require(std::strcmp(factory_->interface_id, compute::interface_id) == 0,
          std::string(path) + " has interface \"" + factory_->interface_id + "\"; expected \"" + compute::interface_id +
              "\": build tests and device from the same sources");
  backend_.reset(factory_->create(device_, stream_));
  if (const char* audit = std::getenv("ASSAY_TEST_AUDIT"); audit && std::strcmp(audit, "1") == 0)
    audited_ = std::make_unique<compute::AuditedBackend>(*backend_, compute::ProductMath::exact,
                                                         compute::AuditLimits{.total = 1e12, .each = 2e8});
}

Session::~Session() {
  if (audited_) std::printf("audit: %s\n", static_cast<compute::AuditedBackend&>(*audited_).text().c_str());
  audited_.reset();
  backend_.reset();
  api_->stream_destroy(device_, stream_);
  api_->close(device_);
  dlclose(library_);
}

Buffer::Buffer(std::size_t bytes) {
  Session& s = Session::get();
  require(s.api().allocate(s.device(), std::max<std::size_t>(bytes, 1), &address_) == ASSAY_OK, s.api().error_text());
}
Buffer::Buffer(Buffer&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}
Buffer::~Buffer() {
  if (address_) Session::get().api().release(Session::get().device(), address_);
}

Tensor contiguous(void* data, DType dtype, const Shape& shape) {
  require(shape.size() <= Tensor::max_rank, "a tensor has at most four dimensions");
  Tensor t(data, dtype, {});
  t.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    t.shape[i] = shape[i];
    t.stride[i] = step;
    step *= shape[i];
  }
  return t;
}

std::int64_t elements(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return n;
}

DeviceTensor::DeviceTensor(DType dtype, const Shape& shape)
    : buffer_(static_cast<std::size_t>(elements(shape)) * size_of(dtype)),
      tensor_(contiguous(buffer_.data(), dtype, shape)) {
  const std::vector<unsigned char> bytes(tensor_.bytes(), 0xff);
  backend().upload(tensor_, bytes.data());
}

DeviceTensor::DeviceTensor(DType dtype, const Shape& shape, const Values& values)
    : buffer_(static_cast<std::size_t>(elements(shape)) * size_of(dtype)),
      tensor_(contiguous(buffer_.data(), dtype, shape)) {
  write(values);
}

void DeviceTensor::write(const Values& values) const {
  require(static_cast<std::int64_t>(values.size()) == tensor_.elements(), "as many values as elements are expected");
  const std::size_t width = size_of(tensor_.dtype);
  std::vector<unsigned char> bytes(tensor_.bytes());
  for (std::size_t i = 0; i < values.size(); ++i) encode(tensor_.dtype, values[i], bytes.data() + i * width);
  backend().upload(tensor_, bytes.data());
}

Values DeviceTensor::read() const { return read(tensor_); }

Values DeviceTensor::read(const Tensor& view) const {
  std::vector<unsigned char> bytes(tensor_.bytes());
  backend().download(bytes.data(), tensor_);
  const std::size_t width = size_of(tensor_.dtype);
  const auto start =
      (static_cast<char*>(view.data) - static_cast<char*>(tensor_.data)) / static_cast<std::int64_t>(width);
  Values values;
  values.reserve(static_cast<std::size_t>(view.elements()));
  Tensor::Dims at{};
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    std::int64_t offset = start;
    for (int d = 0; d < view.rank; ++d) offset += at[static_cast<std::size_t>(d)] * view.step(d);
    values.push_back(decode(view.dtype, bytes.data() + static_cast<std::size_t>(offset) * width));
    for (int d = view.rank - 1; d >= 0 && ++at[static_cast<std::size_t>(d)] == view.dim(d); --d)
      at[static_cast<std::size_t>(d)] = 0;
  }
  return values;
}

// ---- host data -----------------------------------------------------------------------------------------------------

double rounded(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return static_cast<float>(value);
    case DType::bf16: return round_to_bits(value, 7, -126);
    case DType::f16: return std::fabs(value) < 65520.0 ? round_to_bits(value, 10, -14) : value * HUGE_VAL;
    default: return value;
  }
}

Values rounded(DType dtype, Values values) {
  for (double& v : values) v = rounded(dtype, v);
  return values;
}

Values random_values(DType dtype, std::int64_t count, std::uint64_t salt, double mean, double std) {
  std::mt19937_64 engine(0x5eed0000u + salt);
  std::normal_distribution<double> normal(mean, std);
  Values values(static_cast<std::size_t>(count));
  for (double& v : values) v = rounded(dtype, normal(engine));
  return values;
}

Values random_ids(std::int64_t count, std::uint64_t salt, std::int64_t low, std::int64_t high) {
  std::mt19937_64 engine(0x1d5u + salt);
  std::uniform_int_distribution<std::int64_t> uniform(low, high - 1);
  Values values(static_cast<std::size_t>(count));
  for (double& v : values) v = static_cast<double>(uniform(engine));
  return values;
}

// ---- running -------------------------------------------------------------------------------------------------------

void run(const std::function<void()>& call) {
  compute::Backend& b = backend();
  b.set_mode(Mode::prepare);
  try {
    call();
  } catch (...) {
    b.set_mode(Mode::execute);
    throw;
  }
  b.set_mode(Mode::execute);
  const Buffer workspace(b.workspace_bytes());
  b.set_workspace(workspace.data(), b.workspace_bytes());
  try {
    call();
    b.synchronize();
  } catch (...) {
    b.set_workspace(nullptr, 0);
    throw;
  }
  b.set_workspace(nullptr, 0);
}

std::uint64_t allocations_in_second(const std::function<void()>& call) {
  std::uint64_t made = 0;
  int execution = 0;
  run([&] {
    call();
    if (++execution != 2) return;  // the first was the preparation
    const std::uint64_t before = allocation_count();
    call();
    backend().synchronize();
    made = allocation_count() - before;
  });
  return made;
}

// ---- comparing -----------------------------------------------------------------------------------------------------

double relative_error(const Values& got, const Values& reference) {
  const double infinite = std::numeric_limits<double>::infinity();
  if (got.size() != reference.size()) return infinite;
  double squares = 0.0;
  for (const double r : reference) squares += r * r;
  const double rms = reference.empty() ? 0.0 : std::sqrt(squares / static_cast<double>(reference.size()));
  double worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i]) || !std::isfinite(reference[i])) return infinite;
    const double difference = std::fabs(got[i] - reference[i]);
    if (difference > 0.0) worst = std::max(worst, difference / (std::fabs(reference[i]) + rms));
  }
  return worst;
}

void check(const std::string& operation, DType dtype, const Values& got, const Values& reference, double tolerance) {
  const double error = relative_error(got, reference);
  Worst& worst = error_table()[{operation, name_of(dtype)}];
  worst.error = std::max(worst.error, error);
  worst.tolerance = std::max(worst.tolerance, tolerance);
  ++worst.checks;
  EXPECT_EQ(got.size(), reference.size()) << operation << " " << name_of(dtype);
  EXPECT_LE(error, tolerance) << operation << " " << name_of(dtype);
}

Values numerical_gradient(const std::function<double(const Values&)>& loss, Values point, double step) {
  Values gradient(point.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double here = point[i];
    point[i] = here + step;
    const double above = loss(point);
    point[i] = here - step;
    const double below = loss(point);
    point[i] = here;
    gradient[i] = (above - below) / (2.0 * step);
  }
  return gradient;
}

assay_status status_of(const std::function<void()>& call, std::string* text) {
  try {
    call();
    return ASSAY_OK;
  } catch (const Error& e) {
    if (text) *text = e.what();
    return e.status();
  }
}

}  // namespace assay::conformance

// Read by the address sanitizer's runtime, where the build has it. At exit its search for leaks reads the thread-local
// memory that opened libraries hold for each thread, and g++ 12's crashes there once oneDNN's kernels have run on
// several threads ("Tracer caught signal 11"). Without the interception the search leaves that memory out.
extern "C" __attribute__((visibility("default"), used)) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }

int main(int argc, char** argv) {
  try {
    // Skipped as a whole and visibly (77, as the tests' CMake files say), and not passed with nothing done. Before the
    // tests are made, as some are made for the types that the device serves.
    if (const std::string reason = assay::conformance::why_no_device(); !reason.empty()) {
      std::printf("skipped: no device: %s\n", reason.c_str());
      return 77;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "conformance: %s\n", e.what());
    return 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new assay::conformance::TablePrinter);
  const int status = RUN_ALL_TESTS();
  // Not at exit: a vendor's library may open others as it goes, whose own ends would then come before ours.
  assay::conformance::Session::end();
  return status;
}
