# How tests are built and registered.
#
#   assay_unit_test(NAME source... [LABEL label] [LIBS target...] [OF_LIBRARIES] [ALONE] [PROCESSORS n] [COST s]
#                   [TIMEOUT s] [LOCKS resource...])
#       a GoogleTest program and a test of the same name, labelled `unit` unless LABEL says otherwise
#   assay_note_test(NAME label [TARGETS target...])
#       a test made by add_test: its label, and what must be built before it runs
#   assay_count_cases(TEST)
#       TEST runs a GoogleTest program: it leaves behind how many test cases it ran, for scripts/test to add up
#   assay_write_test_list()
#       once all tests are known: tests.txt in the build folder, with a line `FOLDER LABEL TEST` for each
#
# There is a target for each folder and for each label, tests_in_FOLDER and tests_labelled_LABEL: what its tests need.
#
# ctest may run several tests at once. ALONE: nothing runs beside it, as it measures times. PROCESSORS: how many cores it
# keeps busy. COST: seconds that it takes, roughly, said of those that take longest: they start first, so that none runs on
# alone in the end. Tests that do little but wait say more than that: they run beside those that keep the processors busy.
# TIMEOUT: seconds after which it has failed; without it ctest's own 1500. LOCKS: no two tests that name the same resource
# run together.
#
# OF_LIBRARIES: what it tests is compiled elsewhere, in libraries and programs; no source or header of the target is. Its own
# code then goes without the undefined-behaviour sanitizer, which takes half of the time in which it is compiled, and would
# look at little but what is expected. What it tests keeps it, and all keep the address sanitizer.
#
# One test of ctest is a whole program; with ASSAY_TEST_EACH each of its test cases is one. No program runs while building.
option(ASSAY_TEST_EACH "Each test case of a GoogleTest program is a separate test of ctest" OFF)
# scripts/test runs these under the sanitizers, in a separate build.
option(ASSAY_UNIT_TESTS "Build the programs of tests labelled unit; without it these tests are shown as disabled" ON)
include(GoogleTest)

# The code of the tests themselves is compiled often and runs seldom. At this level g++ 12 takes the sum of two strings
# for one that writes beyond them (GCC bug 105651).
set(assay_test_optimisation "$<$<CONFIG:Release>:-O1>" "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow>")
# Programs of tests labelled e2e start the executable and look at what it leaves: they are not optimised at all, which
# compiles in two thirds of the time.
set(assay_e2e_optimisation ${assay_test_optimisation})
set(assay_e2e_headers assay_test_headers) # whose precompiled headers they start from
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(assay_e2e_optimisation -O0)
  set(assay_e2e_headers assay_unoptimised_test_headers)
endif()

function(assay_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE;OF_LIBRARIES" "LABEL;PROCESSORS;COST;TIMEOUT" "LIBS;LOCKS")
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  assay_target(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LIBS} assay_json GTest::gtest_main fmt::fmt nlohmann_json::nlohmann_json)
  if(arg_LABEL STREQUAL e2e)
    target_compile_options(${name} PRIVATE ${assay_e2e_optimisation})
    assay_reuse_precompiled(${assay_e2e_headers} ${name})
  else()
    target_compile_options(${name} PRIVATE ${assay_test_optimisation})
    assay_reuse_precompiled(assay_test_headers ${name})
  endif()
  if(arg_OF_LIBRARIES)
    set_target_properties(${name} PROPERTIES ASSAY_WITHOUT_UBSAN ON)
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)

  set(properties LABELS ${arg_LABEL})
  if(arg_LABEL STREQUAL unit AND NOT ASSAY_UNIT_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    list(APPEND properties DISABLED ON)
  endif()
  if(arg_ALONE)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if(arg_PROCESSORS)
    list(APPEND properties PROCESSORS ${arg_PROCESSORS})
  endif()
  if(arg_COST)
    list(APPEND properties COST ${arg_COST})
  endif()
  if(arg_TIMEOUT)
    list(APPEND properties TIMEOUT ${arg_TIMEOUT})
  endif()
  if(arg_LOCKS)
    list(APPEND properties RESOURCE_LOCK "${arg_LOCKS}")
  endif()
  if(ASSAY_TEST_EACH)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties})
    assay_count_cases(${name})
  endif()
  assay_note_test(${name} ${arg_LABEL} TARGETS ${name})
endfunction()

function(assay_count_cases test)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "GTEST_OUTPUT=json:${PROJECT_BINARY_DIR}/tests/cases/${test}.json")
endfunction()

function(assay_note_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "TARGETS")
  # tests/unit/results and tests/e2e/results are both the folder `results`; a folder below it belongs to it.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "^(unit|e2e)/" "" folder "${folder}")
  string(REGEX REPLACE "/.*" "" folder "${folder}")
  # As tests/e2e/support does for the tests that go through it.
  if(label STREQUAL e2e AND TEST ${name})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ASSAY_PEAK_TRIAL=brief)
  endif()
  set_property(GLOBAL APPEND PROPERTY ASSAY_TEST_LINES "${folder} ${label} ${name}\n")
  foreach(group tests_in_${folder} tests_labelled_${label})
    if(NOT TARGET ${group})
      add_custom_target(${group})
    endif()
    if(arg_TARGETS)
      add_dependencies(${group} ${arg_TARGETS})
    endif()
  endforeach()
endfunction()

function(assay_write_test_list)
  get_property(lines GLOBAL PROPERTY ASSAY_TEST_LINES)
  string(CONCAT text ${lines})
  file(WRITE ${PROJECT_BINARY_DIR}/tests.txt "${text}")
endfunction()
