// What both sides of a C++ interface must share beside the interface itself: how the compiler lays out classes and
// calls their functions, and how its library lays out strings and containers. As text, made of the macros that say so,
// for the ids of interfaces that cross from one library to another.
#pragma once
#include <version>  // the macros of the standard library

#define ASSAY_TEXT_OF_TOKEN(token) #token
#define ASSAY_TEXT_OF(macro) ASSAY_TEXT_OF_TOKEN(macro)

#if !defined(__GXX_ABI_VERSION)
#error "this compiler does not say which C++ ABI it follows: __GXX_ABI_VERSION is not defined"
#endif

#if defined(_LIBCPP_ABI_VERSION)
#define ASSAY_CXX_LIBRARY_ABI "libc++-abi-" ASSAY_TEXT_OF(_LIBCPP_ABI_VERSION)
#elif defined(_GLIBCXX_DEBUG) /* its containers hold more than those of others */
#define ASSAY_CXX_LIBRARY_ABI "libstdc++-cxx11-abi-" ASSAY_TEXT_OF(_GLIBCXX_USE_CXX11_ABI) " debug"
#else
#define ASSAY_CXX_LIBRARY_ABI "libstdc++-cxx11-abi-" ASSAY_TEXT_OF(_GLIBCXX_USE_CXX11_ABI)
#endif

// "gxx-abi-1017 libstdc++-cxx11-abi-1"
#define ASSAY_CXX_ABI "gxx-abi-" ASSAY_TEXT_OF(__GXX_ABI_VERSION) " " ASSAY_CXX_LIBRARY_ABI
