# Headers that nearly every file includes are compiled once, and each file starts from there. Every file still includes
# what it uses: ASSAY_PCH=OFF builds the same sources without.
#
#   assay_precompile(TARGET header...)       TARGET compiles these headers, for itself and for those that reuse them
#   assay_reuse_precompiled(FROM target...)  these start from what FROM has compiled
#
# A compiler takes precompiled headers only where its options are the same. That is why programs that reuse a library's
# are compiled as position-independent as a library: CMake would say -fPIE for them.
option(ASSAY_PCH "Compile common headers once (precompiled headers)" ON)

# ccache looks into what the preprocessor says, which must not repeat the precompiled headers.
set(assay_pch_options "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>")

function(assay_precompile target)
  if(ASSAY_PCH)
    list(TRANSFORM ARGN REPLACE "^(.+)$" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
    target_precompile_headers(${target} PRIVATE ${ARGN})
    target_compile_options(${target} PRIVATE ${assay_pch_options})
  endif()
endfunction()

function(assay_reuse_precompiled from)
  if(NOT ASSAY_PCH)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    get_target_property(type ${target} TYPE)
    if(target STREQUAL from OR NOT type MATCHES "^(EXECUTABLE|OBJECT_LIBRARY|STATIC_LIBRARY|SHARED_LIBRARY|MODULE_LIBRARY)$")
      continue()
    endif()
    target_precompile_headers(${target} REUSE_FROM ${from})
    target_compile_options(${target} PRIVATE ${assay_pch_options})
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endforeach()
endfunction()
