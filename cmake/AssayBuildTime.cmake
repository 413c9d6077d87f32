# What makes a build short, and changes nothing of what is built: a quick linker, headers that are compiled once, and
# several files compiled as one (CMAKE_UNITY_BUILD, which the presets switch on).
#
# Files of one target that are compiled as one share a scope: two of them cannot have private names that are alike. A file
# that must be compiled alone gets the property SKIP_UNITY_BUILD_INCLUSION; one that has its own options is alone anyway.

# ---- linker ----------------------------------------------------------------------------------------------------------

# For our own programs and libraries. Who links an installed library of ours does not see it.
option(ASSAY_FAST_LINKER "Link with mold or lld, where one of them is installed and works" ON)
if(ASSAY_FAST_LINKER)
  include(CheckLinkerFlag)
  foreach(linker mold lld)
    find_program(assay_linker NAMES ld.${linker} ${linker} NO_CACHE)
    if(assay_linker)
      check_linker_flag(CXX -fuse-ld=${linker} ASSAY_LINKS_WITH_${linker})
      if(ASSAY_LINKS_WITH_${linker})
        add_link_options(-fuse-ld=${linker})
        break()
      endif()
    endif()
    unset(assay_linker)
  endforeach()
endif()

# ---- compiler --------------------------------------------------------------------------------------------------------

# g++ looks for garbage once it holds 128 MiB at most, which precompiled headers alone come to.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>")

# Compiled with others, a file is no longer the one that g++ excuses from this.
if(CMAKE_UNITY_BUILD)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
endif()

# In a quarter of the time: CUDA kernels are not optimised, and made for the oldest architecture wanted, whose PTX newer GPUs
# compile for themselves. A device that is built so says it in its build's description.
option(ASSAY_QUICK_KERNELS "Compile the CUDA kernels to see that they compile, and not to be fast" OFF)
# What sdk/ and plugins/ are then compiled with. g++ takes what it has not inlined there for uninitialised.
set(ASSAY_QUICK_OPTIONS "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O1>"
                        "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>")
# What their builds are then called, behind the build type (ASSAY_BUILD_INFO); `host/execution/run/build_note` looks for it.
set(ASSAY_QUICK_LABEL "")
if(ASSAY_QUICK_KERNELS)
  set(ASSAY_QUICK_LABEL "$<$<CONFIG:Release>: -O1, not optimised>")
endif()

# ---- files under edit ------------------------------------------------------------------------------------------------

# Files that are listed here are compiled alone, so that an edit compiles one file and not all of its library. scripts/test
# FOLDER writes the list, also where no file has been edited yet, and a build of everything empties it.
set(assay_edited_alone ${PROJECT_BINARY_DIR}/edited_alone.txt) # a path from the project's folder in each line; "#": none
if(NOT EXISTS ${assay_edited_alone})
  file(TOUCH ${assay_edited_alone})
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${assay_edited_alone})
file(STRINGS ${assay_edited_alone} assay_edited_lines)

function(assay_folders_below folder result)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  set(all ${folder})
  foreach(each IN LISTS folders)
    assay_folders_below(${each} below)
    list(APPEND all ${below})
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

# Called once all targets are known. A file may belong to targets of several folders.
function(assay_compile_edited_alone)
  set(files ${assay_edited_lines})
  list(FILTER files EXCLUDE REGEX "^#")
  if(files)
    list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
    assay_folders_below(${PROJECT_SOURCE_DIR} folders)
    set_source_files_properties(${files} DIRECTORY ${folders} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# The first edit of a file takes it out of those that it was compiled with, which are compiled anew: with all files of a
# large library in half a minute. So where scripts/test FOLDER builds, the library is compiled as several of eight files
# each, in other builds as one, which takes less processor time.
function(assay_compile_in_groups target)
  if(NOT assay_edited_lines)
    return()
  endif()
  get_target_property(files ${target} SOURCES)
  set(count 0)
  foreach(file IN LISTS files)
    math(EXPR group "${count} / 8")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP part_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# ---- precompiled headers ---------------------------------------------------------------------------------------------

# Every file still includes what it uses: ASSAY_PCH=OFF builds the same sources without.
#
#   assay_precompile(TARGET header...)       TARGET compiles these headers, for itself and for those that reuse them
#   assay_reuse_precompiled(FROM target...)  these start from what FROM has compiled
#
# A compiler takes precompiled headers only where its options are the same. That is why programs that reuse a library's
# are compiled as position-independent as a library: CMake would say -fPIE for them.
option(ASSAY_PCH "Compile common headers once (precompiled headers)" ON)

# What libraries of the SDK and plugins include most, of the standard library alone: assay/plugin.hpp asks for a definition
# that each plugin has for itself.
set(assay_sdk_precompiled algorithm array atomic chrono cmath cstddef cstdint cstdio cstdlib cstring exception filesystem fstream
    functional initializer_list limits map memory mutex numeric optional set span sstream stdexcept string string_view thread tuple
    type_traits utility vector)

# ccache looks into what the preprocessor says, which must not repeat the precompiled headers. Those of clang that it has
# kept are of another date than the file that CMake has written: clang must not compare them.
set(assay_pch_options "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>"
                      "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

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
