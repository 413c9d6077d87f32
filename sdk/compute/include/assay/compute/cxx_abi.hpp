// What both sides of a C++ interface must share beside the interface itself: how the compiler lays out classes and
// calls their functions, and how its library lays out strings and containers. As text, made of the macros that say so,
// for the ids of interfaces that cross from one library to another.
#pragma once
#include <version>  // the macros of the standard library

#define ASSAY_TEXT_OF_TOKEN(token) #token
#define ASSAY_TEXT_OF(macro) ASSAY_TEXT_OF_TOKEN(macro)

#if !defined(__GXX_ABI_VERSION) || __GXX_ABI_VERSION < 1002
#error "this compiler does not follow the Itanium C++ ABI: __GXX_ABI_VERSION is not defined, or below 1002"
#endif

#if defined(_LIBCPP_ABI_VERSION)
#define ASSAY_CXX_LIBRARY_ABI "libc++-abi-" ASSAY_TEXT_OF(_LIBCPP_ABI_VERSION)
#elif defined(_GLIBCXX_DEBUG) /* its containers hold more than those of others */
#define ASSAY_CXX_LIBRARY_ABI "libstdc++-cxx11-abi-" ASSAY_TEXT_OF(_GLIBCXX_USE_CXX11_ABI) " debug"
#else
#define ASSAY_CXX_LIBRARY_ABI "libstdc++-cxx11-abi-" ASSAY_TEXT_OF(_GLIBCXX_USE_CXX11_ABI)
#endif

// The number itself is left out: g++ 12, g++ 13 and clang have three, which differ in corners (the mangling of some
// templates) that no interface of ours touches, and what they compile works together.
// "itanium-abi libstdc++-cxx11-abi-1"
#define ASSAY_CXX_ABI "itanium-abi " ASSAY_CXX_LIBRARY_ABI
