# assay_add_plugin(NAME source...): a workload plugin, NAME.so, of C (.c), C++ (.cpp, .cc, .cxx) and CUDA (.cu) sources.
# The project enables their languages; further libraries are linked with target_link_libraries as usual.
#
# assay_add_plugin_test(PLUGIN EXPERIMENT.toml [NAME test] [SET key=value...] [LABELS label...]): a test that runs the
# experiment with the plugin, and passes when every case is ok and its verification found nothing wrong. SET changes
# parameters and settings, as `assay run --set` does. A test whose cases all lack their device here (no GPU) is skipped.
#
# assay_add_plugin_validation(PLUGIN [NAME test] [SET key=value...] [LABELS label...]): a test that asks of the plugin all
# that `assay validate` asks, and passes when nothing is found, no warning either. SET makes the case small that is tried.
# The test is named validate.PLUGIN, and is skipped where a workload lacks its device here.
#
# A plugin is a MODULE with hidden visibility, a version script that leaves one exported symbol, and no undefined
# symbols: what loads here loads everywhere, and two plugins never see each other's functions. Our own plugins are made
# by the same function; it is installed with the SDK.

set(_assay_version_script "${CMAKE_CURRENT_LIST_DIR}/assay_plugin.map")
set(_assay_test_script "${CMAKE_CURRENT_LIST_DIR}/AssayPluginTest.cmake")

# The languages of the sources, by their endings or by the property LANGUAGE. Generator expressions and headers have none.
function(_assay_languages_of result)
  set(languages "")
  foreach(source IN LISTS ARGN)
    get_source_file_property(language "${source}" LANGUAGE)
    if(NOT language)
      set(language "")
      if(source MATCHES "\\.cu$")
        set(language CUDA)
      elseif(source MATCHES "\\.(C|cc|cpp|cxx|c\\+\\+)$")
        set(language CXX)
      elseif(source MATCHES "\\.c$")
        set(language C)
      endif()
    endif()
    list(APPEND languages ${language})
  endforeach()
  list(REMOVE_DUPLICATES languages)
  set(${result} "${languages}" PARENT_SCOPE)
endfunction()

# Ends the configuration when a language is wanted that the project does not enable.
function(_assay_require_languages name why)
  set(missing "")
  set(wanted "")
  foreach(language C CXX CUDA)
    if(CMAKE_${language}_COMPILER_LOADED)
      list(APPEND wanted ${language})
    elseif(language IN_LIST ARGN)
      list(APPEND wanted ${language})
      list(APPEND missing ${language})
    endif()
  endforeach()
  if(missing)
    list(JOIN missing " and " missing)
    list(JOIN wanted " " wanted)
    message(FATAL_ERROR "assay_add_plugin(${name}): the project does not enable ${missing}, ${why}; write "
                        "project(... LANGUAGES ${wanted})")
  endif()
endfunction()

function(assay_add_plugin name)
  if(NOT name MATCHES "^[A-Za-z0-9_.-]+$")
    message(FATAL_ERROR "assay_add_plugin: '${name}' is not a name for a plugin; expected letters, digits, '_', '.' and "
                        "'-' alone, as experiments select the plugin by it")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "assay_add_plugin(${name}): no source files; expected assay_add_plugin(${name} file.cpp...)")
  endif()
  _assay_languages_of(languages ${ARGN})
  list(JOIN ARGN " " sources)
  _assay_require_languages("${name}" "in which its sources are written (${sources})" ${languages})
  # What is not C throughout is linked as C++, with its run-time library.
  set(linked_as CXX)
  if(languages STREQUAL "C" AND NOT CMAKE_CXX_COMPILER_LOADED)
    set(linked_as C)
  endif()
  _assay_require_languages("${name}" "which plugins are linked as" ${linked_as})
  if("CUDA" IN_LIST languages AND CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "assay_add_plugin(${name}): ${CMAKE_CUDA_COMPILER} is version ${CMAKE_CUDA_COMPILER_VERSION}, "
                        "which has no C++20; expected version 12 or later, CUDACXX=/path/to/nvcc in an empty build folder")
  endif()
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
    message(NOTICE "assay: CMAKE_BUILD_TYPE is empty, so plugin '${name}' is compiled without optimisation; "
                   "-DCMAKE_BUILD_TYPE=Release optimises")
  endif()

  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE assay::sdk)
  set_target_properties(
    ${name}
    PROPERTIES PREFIX ""
               SUFFIX ".so"
               LINKER_LANGUAGE ${linked_as}
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               CUDA_VISIBILITY_PRESET hidden
               CUDA_RUNTIME_LIBRARY Static
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS "${_assay_version_script}")
  if(CMAKE_C_COMPILER_LOADED)
    target_compile_features(${name} PRIVATE c_std_11)
  endif()
  if(CMAKE_CXX_COMPILER_LOADED)
    target_compile_features(${name} PRIVATE cxx_std_20)
  endif()
  if("CUDA" IN_LIST languages)
    if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_VERSION VERSION_LESS 3.26)
      # That CMake does not know that nvcc has C++20, and would refuse the standard by its name.
      set_property(TARGET ${name} PROPERTY CUDA_STANDARD)
      target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")
    else()
      target_compile_features(${name} PRIVATE cuda_std_20)
    endif()
  endif()
  # Every result says which build of the plugin made it. A folder that changes the build type's options sets assay_build_label.
  set(build "${CMAKE_${linked_as}_COMPILER_ID} ${CMAKE_${linked_as}_COMPILER_VERSION}")
  if("CUDA" IN_LIST languages)
    string(APPEND build " nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
  endif()
  target_compile_definitions(
    ${name} PRIVATE "ASSAY_BUILD_INFO=\"${build} $<IF:$<BOOL:$<CONFIG>>,$<CONFIG>,unoptimised>${assay_build_label}\"")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${_assay_version_script}")
  # The sanitizers' runtime is resolved by the executable, so -z defs would refuse a sanitized plugin.
  if(NOT ASSAY_SANITIZE)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()

function(assay_add_plugin_test plugin experiment)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "SET;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "assay_add_plugin_test(${plugin} ${experiment}): '${arg_UNPARSED_ARGUMENTS}"
                        "${arg_KEYWORDS_MISSING_VALUES}' is not understood; expected assay_add_plugin_test(PLUGIN "
                        "EXPERIMENT.toml [NAME test] [SET key=value...] [LABELS label...])")
  endif()
  if(NOT TARGET ${plugin})
    message(FATAL_ERROR "assay_add_plugin_test: there is no plugin '${plugin}'; expected the name that was given to "
                        "assay_add_plugin before")
  endif()
  cmake_path(ABSOLUTE_PATH experiment BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${experiment}")
    message(FATAL_ERROR "assay_add_plugin_test(${plugin}): there is no experiment ${experiment}")
  endif()
  if(NOT arg_NAME)
    cmake_path(GET experiment STEM LAST_ONLY arg_NAME)
  endif()
  set(options "")
  foreach(setting IN LISTS arg_SET)
    list(APPEND options --set "${setting}")
  endforeach()
  add_test(NAME ${arg_NAME}
           COMMAND "${CMAKE_COMMAND}" -D "HOST=${ASSAY_HOST}" -D "EXPERIMENT=${experiment}"
                   -D "PLUGINS=$<TARGET_FILE_DIR:${plugin}>"
                   -D "RESULTS=${CMAKE_CURRENT_BINARY_DIR}/assay_tests/${arg_NAME}" -D "OPTIONS=${options}" -P
                   "${_assay_test_script}")
  set_tests_properties(${arg_NAME} PROPERTIES SKIP_REGULAR_EXPRESSION "assay: skipped: ")
  if(arg_LABELS)
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}")
  endif()
endfunction()

function(assay_add_plugin_validation plugin)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "SET;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "assay_add_plugin_validation(${plugin}): '${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}' is "
                        "not understood; expected assay_add_plugin_validation(PLUGIN [NAME test] [SET key=value...] "
                        "[LABELS label...])")
  endif()
  if(NOT TARGET ${plugin})
    message(FATAL_ERROR "assay_add_plugin_validation: there is no plugin '${plugin}'; expected the name that was given to "
                        "assay_add_plugin before")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME validate.${plugin})
  endif()
  set(options "")
  foreach(setting IN LISTS arg_SET)
    list(APPEND options --set "${setting}")
  endforeach()
  add_test(NAME ${arg_NAME} COMMAND "${ASSAY_HOST}" validate "$<TARGET_FILE:${plugin}>" --strict ${options})
  set_tests_properties(${arg_NAME} PROPERTIES SKIP_REGULAR_EXPRESSION "the workload needs the device")
  if(arg_LABELS)
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}")
  endif()
endfunction()
