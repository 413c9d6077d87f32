#include "worker/loaded_libraries.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace assay::host::worker {
namespace {

record::Named<std::string> without(const void* address) {
  const std::array<const void*, 1> known{address};
  return loaded_libraries(known);
}

TEST(LoadedLibraries, AreNamedWithTheirBuildIdsInOrder) {
  const auto libraries = loaded_libraries({});
  const std::string* c_library = record::find(libraries, "libc.so.6");
  ASSERT_TRUE(c_library);
  EXPECT_TRUE(*c_library == "no build id" || c_library->find_first_not_of("0123456789abcdef") == std::string::npos)
      << *c_library;
  EXPECT_TRUE(std::is_sorted(libraries.begin(), libraries.end()));
  for (const auto& [name, build] : libraries) {
    EXPECT_FALSE(name.empty());
    EXPECT_FALSE(name.starts_with("linux-vdso")) << "the kernel's, which environment.json names";
    EXPECT_FALSE(build.empty()) << name;
  }
}

TEST(LoadedLibraries, OneIsAsTheLinkerWroteIt) {
  ASSERT_TRUE(::dlopen(OPENED_LIBRARY, RTLD_NOW)) << ::dlerror();
  const auto libraries = loaded_libraries({});
  const std::string* build = record::find(libraries, "libassay_opened_by_a_test.so");
  ASSERT_TRUE(build);
  EXPECT_EQ(*build, "0123456789abcdef0123456789abcdef01234567");
}

TEST(LoadedLibraries, WhatIsRecordedAsAFileIsLeftOut) {
  void* library = ::dlopen(OPENED_LIBRARY, RTLD_NOW);
  ASSERT_TRUE(library) << ::dlerror();
  const auto libraries = without(::dlsym(library, "assay_opened_by_a_test"));
  EXPECT_EQ(record::find(libraries, "libassay_opened_by_a_test.so"), nullptr);
  EXPECT_TRUE(record::find(libraries, "libc.so.6"));
}

}  // namespace
}  // namespace assay::host::worker
