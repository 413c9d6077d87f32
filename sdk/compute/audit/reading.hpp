// Tensors on the host in float64, in part or whole, for whoever checks what a backend did with them.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/compute/inspector.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace assay::compute::audit {

using Values = std::vector<double>;
using Places = std::vector<std::int64_t>;

using Segment = RowSegment;
using Segments = std::vector<Segment>;

// Tensors of no more elements are looked at whole by operations that cost the same for each element.
inline constexpr std::int64_t room = std::int64_t{1} << 16;

inline std::int64_t width_of(const Tensor& t) { return t.dim(-1); }
// None of an empty tensor, as the moments of AdamW are where Muon updates every parameter.
inline std::int64_t rows_of(const Tensor& t) { return t.dim(-1) == 0 ? 0 : t.elements() / t.dim(-1); }

// `most` of 0 .. count - 1: all, if they are no more; else the first two, the last two and some between, rising.
Places some_of(std::int64_t count, std::int64_t most);
// Rows cut in segments, all of them where the tensor has no more than `room` elements, else some.
Segments some_segments(const Tensor& t, std::int64_t room);
Segments whole_rows(const Tensor& t, const Places& rows);
Segments whole(const Tensor& t);
// What some_segments(t, room) come to, times what an element costs.
double elements_looked_at(const Tensor& t, double cost);

// All of these block, and read by strides, in the order of the elements.
Values read(Backend& backend, const Tensor& t);
Values read(Backend& backend, const Tensor& t, const Segments& segments);
Values read_rows(Backend& backend, const Tensor& t, const Places& rows);
std::vector<std::int64_t> read_integers(Backend& backend, const Tensor& t);  // i64, contiguous
double read_number(Backend& backend, const Tensor& t);                       // the first element

// Random signs, the same in each call; `stream` sets those of rows and columns apart.
LineWeights random_signs(std::int64_t count, std::uint64_t stream);
// What a reader of the whole matrix reads of it, gaps between rows among it.
double elements_read(const Tensor& t);

}  // namespace assay::compute::audit
