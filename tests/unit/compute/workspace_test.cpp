// What prepares a step, on a backend that finds out late, when the walk is over, that it does not serve an operation.
#include <gtest/gtest.h>

#include <assay/compute/workspace.hpp>
#include <string>

namespace {

using assay::Error;
using assay::compute::Mode;

class LateBackend : public assay::compute::Backend {
 public:
  std::string refusal;  // thrown when the mode goes back to execute
  Mode mode = Mode::execute;

  const char* kind() const override { return "late"; }
  void set_mode(Mode wanted) override {
    mode = wanted;
    if (mode == Mode::execute && !refusal.empty()) throw Error(ASSAY_UNSUPPORTED, refusal);
  }
  void synchronize() override {}
  std::size_t workspace_bytes() const override { return 0; }
  void set_workspace(void*, std::size_t) override {}
  std::vector<assay::compute::PrimitiveInfo> primitives() const override { return {}; }
  void set_product_math(assay::compute::ProductMath) override {}
  std::unique_ptr<assay::compute::Graph> capture(const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<assay::compute::Feed> open_feed(std::size_t, std::size_t, void*) override { return nullptr; }
  void upload(const assay::compute::Tensor&, const void*) override {}
  void download(void*, const assay::compute::Tensor&) override {}
  void run_any(const assay::compute::AnyOperation&) override {}
};

template <class Walk>
std::string thrown_by(LateBackend& backend, Walk walk) {
  assay::compute::Workspace workspace;
  try {
    workspace.prepare(assay::Host(nullptr), backend, walk);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Workspace, ARefusalAtTheEndOfTheWalkIsThrown) {
  LateBackend backend;
  backend.refusal = "attention refused";
  EXPECT_EQ(thrown_by(backend, [] {}), "attention refused");
  EXPECT_EQ(backend.mode, Mode::execute);
}

TEST(Workspace, ARefusalOfAnEarlierOperationComesBeforeWhatTheWalkThrows) {
  LateBackend backend;
  backend.refusal = "attention refused";
  EXPECT_EQ(thrown_by(backend, [] { throw Error(ASSAY_UNSUPPORTED, "later"); }), "attention refused");
  EXPECT_EQ(backend.mode, Mode::execute);
}

TEST(Workspace, WhatTheWalkThrowsIsThrownInExecuteMode) {
  LateBackend backend;
  EXPECT_EQ(thrown_by(backend, [] { throw Error(ASSAY_UNSUPPORTED, "the walk's"); }), "the walk's");
  EXPECT_EQ(backend.mode, Mode::execute);
  EXPECT_EQ(thrown_by(backend, [&] { EXPECT_EQ(backend.mode, Mode::prepare); }), "");
}

}  // namespace
