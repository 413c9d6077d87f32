# What every target of the project shares. Included by the build itself; assay_add_plugin lives in AssayAddPlugin.cmake,
# which is installed too: our own plugins use the door that everyone uses.

# The build tree has the layout of an installed tree, so that the host finds plugins and devices by one rule.
set(ASSAY_PLUGIN_SUBDIR lib/assay/plugins)
set(ASSAY_DEVICE_SUBDIR lib/assay/devices)
set(ASSAY_COMM_SUBDIR lib/assay/comm)
set(ASSAY_PLANNED_SUBDIR lib/assay/planned) # devices and communicators that carry nothing out
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

include(AssayAddPlugin)

add_library(assay_build_options INTERFACE)
target_compile_features(assay_build_options INTERFACE cxx_std_20 c_std_11)
# Designated initialisers leave members at their defaults on purpose. What nvcc generates is not pedantic C++, so .cu
# files go without -Wpedantic.
target_compile_options(
  assay_build_options
  INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wno-missing-field-initializers>"
            # Its warnings are of pragmas that g++ has, and of braces that initialisers of arrays may leave out.
            "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-pragmas;-Wno-missing-braces>"
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>"
            "$<$<AND:$<BOOL:${ASSAY_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>"
            "$<$<AND:$<BOOL:${ASSAY_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings;-Xcompiler=-Werror>")
# ASSAY_WITHOUT_UBSAN of a target: without the undefined-behaviour sanitizer. ASSAY_WITHOUT_POINTER_CHECKS: without its
# looks at each pointer that is followed (is it null, is it aligned), which take a third of the compiler's time. Properties,
# as options of the target's own come before these, and the last of two that contradict each other counts.
if(ASSAY_SANITIZE)
  target_compile_options(assay_build_options INTERFACE
    -fsanitize=address "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:ASSAY_WITHOUT_UBSAN>>>:-fsanitize=undefined>"
    "$<$<BOOL:$<TARGET_PROPERTY:ASSAY_WITHOUT_POINTER_CHECKS>>:-fno-sanitize=null,alignment>"
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(assay_build_options INTERFACE -fsanitize=address,undefined)
  # g++ defines it, clang++ 14 does not, and sources ask for it.
  target_compile_definitions(assay_build_options INTERFACE "$<$<COMPILE_LANG_AND_ID:C,Clang>:__SANITIZE_ADDRESS__=1>"
                                                           "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:__SANITIZE_ADDRESS__=1>")
  # That texts of {fmt} fit their arguments is asked by the compiler in the other builds, in a tenth of its time.
  target_compile_definitions(assay_build_options INTERFACE $<BUILD_INTERFACE:FMT_CONSTEVAL=>)
endif()

# assay_target(NAME): the project's warnings, language level and visibility for a target of ours.
function(assay_target name)
  target_link_libraries(${name} PRIVATE assay_build_options)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF C_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                                           C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
