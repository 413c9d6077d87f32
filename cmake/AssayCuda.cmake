# Is the CUDA device built? ASSAY_CUDA says: ON (what it needs must be here), OFF, or AUTO (built when all of it is here;
# otherwise one line for each thing that is missing, with the command that brings it).
#
#   ASSAY_HAVE_CUDA            the answer; when it is true the language CUDA is enabled, and there are
#   assay::cuda_headers        the toolkit's headers: runtime, cuBLASLt, NVTX, CUPTI
#   assay::cudart              the CUDA runtime, static: no libcudart is needed where the device is used
#   assay::cudart_shared       the same as a shared library, when found: a test puts its own functions before it
#   assay::cublas_lt, assay::cudnn, assay::nvrtc
#   assay::cudnn_frontend      headers, and what they use. They carry a changed copy of nlohmann json: for the one file
#                              that needs them
#   assay::nccl                when found: ranks on GPUs speak through it (sdk/comm/nccl)
#   ASSAY_CUDA_LIBRARY_FOLDERS where the vendor's shared libraries were found: the run path of what links them
#
# Each library is taken with the header that lies beside it, from the first of these places that has both: the folders of
# ASSAY_CUDA_ROOTS, the toolkit, the distribution, Python's packages (.deps/python, .venv, then those of python3).
# Included by the top CMakeLists.txt, as a language is enabled for a folder and what is below it.

set(ASSAY_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON or OFF")
set_property(CACHE ASSAY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ASSAY_CUDA_ROOTS "" CACHE STRING "Further folders with include/ and lib/ in which CUDA libraries are looked for")
if(NOT ASSAY_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ASSAY_CUDA is '${ASSAY_CUDA}'; expected AUTO, ON or OFF")
endif()
set(ASSAY_HAVE_CUDA FALSE)
if(ASSAY_CUDA STREQUAL "OFF")
  return()
endif()
if(ASSAY_SANITIZE AND ASSAY_CUDA STREQUAL "AUTO")
  message(STATUS "assay: no CUDA device in a sanitized build: the driver's memory and the address sanitizer's collide")
  return()
endif()

set(assay_cuda_missing "")
set(ASSAY_CUDA_LIBRARY_FOLDERS "")

# assay_cuda_lacks(WHAT REMEDY): notes what is missing, and the command that brings it.
macro(assay_cuda_lacks what remedy)
  list(APPEND assay_cuda_missing "${what}. Remedy: ${remedy}")
endmacro()

# ---- the compiler ----------------------------------------------------------------------------------------------------

find_program(ASSAY_NVCC nvcc PATHS /usr/local/cuda/bin
             DOC "The CUDA compiler; CMAKE_CUDA_COMPILER and the environment's CUDACXX come first")
mark_as_advanced(ASSAY_NVCC)
set(assay_nvcc "${ASSAY_NVCC}")
if(CMAKE_CUDA_COMPILER)
  set(assay_nvcc "${CMAKE_CUDA_COMPILER}")
elseif(DEFINED ENV{CUDACXX})
  set(assay_nvcc "$ENV{CUDACXX}")
endif()
set(assay_nvcc_remedy "sudo apt-get install cuda-toolkit-13-0 (from NVIDIA's package source, see "
                      "https://developer.nvidia.com/cuda-downloads), or CUDACXX=/path/to/nvcc where there is one")
string(CONCAT assay_nvcc_remedy ${assay_nvcc_remedy})
set(assay_nvcc_version "")
set(assay_cuda_root "")
if(assay_nvcc)
  execute_process(COMMAND "${assay_nvcc}" --version OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE result)
  if(result EQUAL 0 AND said MATCHES "release [0-9.]+, V([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(assay_nvcc_version "${CMAKE_MATCH_1}")
  endif()
endif()
if(NOT assay_nvcc)
  assay_cuda_lacks("no nvcc on the PATH, in /usr/local/cuda/bin or named by CUDACXX" "${assay_nvcc_remedy}")
elseif(NOT assay_nvcc_version MATCHES "^13\\.")
  assay_cuda_lacks("${assay_nvcc} is of version '${assay_nvcc_version}', and version 13 is needed"
                   "${assay_nvcc_remedy}")
else()
  # Where the toolkit is: nvcc says so itself, also where it is a link or a script.
  execute_process(COMMAND "${assay_nvcc}" --dryrun -x cu -c /dev/null -o /dev/null ERROR_VARIABLE said OUTPUT_QUIET)
  if(said MATCHES "#\\$ TOP=([^\n]+)")
    get_filename_component(assay_cuda_root "${CMAKE_MATCH_1}" REALPATH)
  else()
    get_filename_component(assay_cuda_root "${assay_nvcc}" REALPATH)
    get_filename_component(assay_cuda_root "${assay_cuda_root}/../.." ABSOLUTE)
  endif()
endif()

# ---- headers and libraries -------------------------------------------------------------------------------------------

# Pairs "folder of headers|folder of libraries", in the order of preference.
set(assay_cuda_places "")
set(assay_python_folders "${PROJECT_SOURCE_DIR}/.deps/python")
file(GLOB found LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages")
list(APPEND assay_python_folders ${found})
find_program(ASSAY_PYTHON3 python3)
mark_as_advanced(ASSAY_PYTHON3)
if(ASSAY_PYTHON3)
  execute_process(COMMAND "${ASSAY_PYTHON3}" -c "import sys; print(';'.join(p for p in sys.path if p.endswith('-packages')))"
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND assay_python_folders ${found})
endif()
list(REMOVE_DUPLICATES assay_python_folders)

foreach(root IN LISTS ASSAY_CUDA_ROOTS assay_cuda_root)
  if(NOT root)
    continue()
  endif()
  foreach(target "" "/targets/${CMAKE_SYSTEM_PROCESSOR}-linux")
    foreach(library_folder lib64 lib)
      list(APPEND assay_cuda_places "${root}${target}/include|${root}${target}/${library_folder}")
    endforeach()
  endforeach()
  list(APPEND assay_cuda_places "${root}/extras/CUPTI/include|${root}/extras/CUPTI/lib64")
endforeach()
foreach(library_folder "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}" /usr/lib64 /usr/local/lib)
  foreach(header_folder /usr/include "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}" /usr/local/include)
    list(APPEND assay_cuda_places "${header_folder}|${library_folder}")
  endforeach()
endforeach()
foreach(folder IN LISTS assay_python_folders)
  file(GLOB found LIST_DIRECTORIES true "${folder}/nvidia/*")
  foreach(package IN LISTS found)
    list(APPEND assay_cuda_places "${package}/include|${package}/lib")
  endforeach()
endforeach()

# assay_cuda_find(RESULT header library...): sets RESULT_HEADERS and RESULT_LIBRARY by the first place that has the header
# and one of the libraries; no library named: the header is enough.
function(assay_cuda_find result header)
  foreach(place IN LISTS assay_cuda_places)
    string(REPLACE "|" ";" place "${place}")
    list(GET place 0 header_folder)
    list(GET place 1 library_folder)
    if(NOT EXISTS "${header_folder}/${header}")
      continue()
    endif()
    if(NOT ARGN)
      set(${result}_HEADERS "${header_folder}" PARENT_SCOPE)
      return()
    endif()
    foreach(library IN LISTS ARGN)
      if(EXISTS "${library_folder}/${library}")
        set(${result}_HEADERS "${header_folder}" PARENT_SCOPE)
        set(${result}_LIBRARY "${library_folder}/${library}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  set(${result}_HEADERS "" PARENT_SCOPE)
  set(${result}_LIBRARY "" PARENT_SCOPE)
endfunction()

# The number that a header gives to a macro.
function(assay_cuda_macro result file macro)
  set(number "")
  if(EXISTS "${file}")
    file(STRINGS "${file}" line REGEX "^#define ${macro} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+$" number "${line}")
  endif()
  set(${result} "${number}" PARENT_SCOPE)
endfunction()

# What pip installs here is found without any environment being active.
set(assay_pip "python3 -m pip install --target '${PROJECT_SOURCE_DIR}/.deps/python'")

assay_cuda_find(assay_cudart cuda_runtime_api.h libcudart_static.a)
assay_cuda_find(assay_cudart_shared cuda_runtime_api.h libcudart.so.13)
assay_cuda_find(assay_cublas_lt cublasLt.h libcublasLt.so.13)
assay_cuda_find(assay_cudnn cudnn.h libcudnn.so.9)
assay_cuda_find(assay_nvrtc nvrtc.h libnvrtc.so.13)
assay_cuda_find(assay_nccl nccl.h libnccl.so.2)
assay_cuda_find(assay_nvtx nvtx3/nvToolsExt.h)
assay_cuda_find(assay_cupti cupti.h libcupti.so.13)
if(NOT assay_cupti_HEADERS) # the library is opened by name when a trace is wanted: the header is enough to build
  assay_cuda_find(assay_cupti cupti.h)
endif()
# assay_cuda_lacks_part(VARIABLE WHAT APT PIP): where VARIABLE is empty.
macro(assay_cuda_lacks_part variable what apt pip)
  if(NOT ${variable})
    assay_cuda_lacks("${what}" "sudo apt-get install ${apt}, or ${assay_pip} '${pip}'")
  endif()
endmacro()
if(assay_cuda_root) # otherwise the toolkit is missing, and what brings it brings these
  assay_cuda_lacks_part(assay_cudart_LIBRARY "the CUDA runtime is missing (cuda_runtime_api.h with libcudart_static.a)"
                        cuda-cudart-dev-13-0 "nvidia-cuda-runtime==13.0.*")
  assay_cuda_lacks_part(assay_cublas_lt_LIBRARY "cuBLASLt 13 is missing (cublasLt.h with libcublasLt.so.13)"
                        libcublas-dev-13-0 "nvidia-cublas==13.*")
  assay_cuda_lacks_part(assay_nvrtc_LIBRARY "NVRTC 13 is missing (nvrtc.h with libnvrtc.so.13)"
                        cuda-nvrtc-dev-13-0 "nvidia-cuda-nvrtc==13.0.*")
  assay_cuda_lacks_part(assay_nvtx_HEADERS "NVTX is missing (nvtx3/nvToolsExt.h)" cuda-nvtx-13-0 "nvidia-nvtx==13.0.*")
  assay_cuda_lacks_part(assay_cupti_HEADERS "CUPTI is missing (cupti.h)" cuda-cupti-dev-13-0 "nvidia-cuda-cupti==13.0.*")
endif()
assay_cuda_lacks_part(assay_cudnn_LIBRARY "cuDNN 9 is missing (cudnn.h with libcudnn.so.9)" cudnn9-cuda-13
                      "nvidia-cudnn-cu13==9.19.*")

set(assay_frontend_remedy
    "python3 -m pip install --no-deps --target '${PROJECT_SOURCE_DIR}/.deps/cudnn_frontend' nvidia-cudnn-frontend==1.23.0")
set(assay_frontend_HEADERS "")
set(assay_frontend_refused "")
set(assay_frontend_places "${PROJECT_SOURCE_DIR}/.deps/cudnn_frontend/include")
foreach(root IN LISTS ASSAY_CUDA_ROOTS assay_python_folders)
  list(APPEND assay_frontend_places "${root}/include")
endforeach()
list(APPEND assay_frontend_places /usr/local/include /usr/include)
foreach(folder IN LISTS assay_frontend_places)
  if(EXISTS "${folder}/cudnn_frontend.h")
    assay_cuda_macro(major "${folder}/cudnn_frontend_version.h" CUDNN_FRONTEND_MAJOR_VERSION)
    assay_cuda_macro(minor "${folder}/cudnn_frontend_version.h" CUDNN_FRONTEND_MINOR_VERSION)
    if(major EQUAL 1 AND minor GREATER_EQUAL 19 AND minor LESS_EQUAL 23)
      set(assay_frontend_HEADERS "${folder}")
      set(assay_frontend_version "${major}.${minor}")
      break()
    endif()
    string(APPEND assay_frontend_refused ", and ${folder} has version ${major}.${minor}")
  endif()
endforeach()
if(NOT assay_frontend_HEADERS)
  assay_cuda_lacks("the headers of cudnn-frontend 1.19 to 1.23 are missing${assay_frontend_refused}"
                   "${assay_frontend_remedy}")
endif()

# ---- does it compile? ------------------------------------------------------------------------------------------------

# The compiler that compiles the rest, unless another was chosen: nvcc refuses those that are too new for it.
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
if(NOT assay_cuda_missing)
  set(host_compiler "${CMAKE_CUDA_HOST_COMPILER}")
  if(NOT host_compiler)
    set(host_compiler "$ENV{CUDAHOSTCXX}")
  endif()
  # Enabling a language that does not work ends the configuration, so it is tried first; once for each pair.
  if(NOT ASSAY_NVCC_WORKS STREQUAL "${assay_nvcc} ${assay_nvcc_version} ${host_compiler}")
    set(source "${PROJECT_BINARY_DIR}/CMakeFiles/assay_nvcc_try.cu")
    file(WRITE "${source}" "#include <cuda_bf16.h>\n__global__ void halve(__nv_bfloat16* x) { *x = *x * __nv_bfloat16(0.5F); }\n"
                           "void launch(__nv_bfloat16* x) { halve<<<1, 1>>>(x); }\n")
    execute_process(COMMAND "${assay_nvcc}" -ccbin "${host_compiler}" -std=c++20 -arch=sm_90 -c "${source}" -o "${source}.o"
                    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE result)
    if(result EQUAL 0)
      set(ASSAY_NVCC_WORKS "${assay_nvcc} ${assay_nvcc_version} ${host_compiler}" CACHE INTERNAL "")
    else()
      string(REGEX REPLACE "[\r\n;]+" " | " said "${said}")
      string(SUBSTRING "${said}" 0 400 said)
      assay_cuda_lacks("${assay_nvcc} does not compile a small kernel with ${host_compiler}: ${said}"
                       "CUDAHOSTCXX=/path/to/a g++ that this nvcc supports, in an empty build folder")
    endif()
  endif()
endif()

if(assay_cuda_missing)
  list(JOIN assay_cuda_missing "\n  " assay_cuda_missing_lines)
  if(ASSAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ASSAY_CUDA is ON, but the CUDA device cannot be built:\n  ${assay_cuda_missing_lines}")
  endif()
  message(STATUS "assay: building without the CUDA device (ASSAY_CUDA=OFF says so without these lines):")
  foreach(line IN LISTS assay_cuda_missing)
    message(STATUS "  ${line}")
  endforeach()
  return()
endif()

# ---- the language and the targets ------------------------------------------------------------------------------------

set(CMAKE_CUDA_COMPILER "${assay_nvcc}")
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  if(DEFINED ENV{CUDAARCHS})
    set(assay_cuda_architectures "$ENV{CUDAARCHS}")
  else()
    set(assay_cuda_architectures "80-real;90")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${assay_cuda_architectures}"
      CACHE STRING "GPUs that the kernels are compiled for; the newest also as PTX, which later GPUs compile for themselves")
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
enable_language(CUDA)

# assay_cuda_target(NAME HEADERS [LIBRARY KIND])
function(assay_cuda_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND;LIBRARY" "HEADERS;LINKS")
  if(arg_LIBRARY)
    add_library(assay::${name} ${arg_KIND} IMPORTED GLOBAL)
    set_target_properties(assay::${name} PROPERTIES IMPORTED_LOCATION "${arg_LIBRARY}")
    if(arg_KIND STREQUAL "SHARED")
      get_filename_component(folder "${arg_LIBRARY}" DIRECTORY)
      list(APPEND ASSAY_CUDA_LIBRARY_FOLDERS "${folder}")
      list(REMOVE_DUPLICATES ASSAY_CUDA_LIBRARY_FOLDERS)
      set(ASSAY_CUDA_LIBRARY_FOLDERS "${ASSAY_CUDA_LIBRARY_FOLDERS}" PARENT_SCOPE)
    endif()
  else()
    add_library(assay::${name} INTERFACE IMPORTED GLOBAL)
  endif()
  list(REMOVE_DUPLICATES arg_HEADERS)
  # Not /usr/include: naming it would change the order in which the standard headers are looked for.
  list(REMOVE_ITEM arg_HEADERS /usr/include)
  set_target_properties(assay::${name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${arg_HEADERS}"
                                                  INTERFACE_LINK_LIBRARIES "${arg_LINKS}")
endfunction()

find_package(Threads REQUIRED)
assay_cuda_target(cuda_headers HEADERS "${assay_cudart_HEADERS}" "${assay_nvtx_HEADERS}" "${assay_cupti_HEADERS}")
assay_cuda_target(cudart HEADERS "${assay_cudart_HEADERS}" LIBRARY "${assay_cudart_LIBRARY}" KIND STATIC
                  LINKS Threads::Threads ${CMAKE_DL_LIBS} rt)
if(assay_cudart_shared_LIBRARY)
  assay_cuda_target(cudart_shared HEADERS "${assay_cudart_shared_HEADERS}" LIBRARY "${assay_cudart_shared_LIBRARY}"
                    KIND SHARED)
endif()
assay_cuda_target(cublas_lt HEADERS "${assay_cublas_lt_HEADERS}" LIBRARY "${assay_cublas_lt_LIBRARY}" KIND SHARED)
assay_cuda_target(cudnn HEADERS "${assay_cudnn_HEADERS}" LIBRARY "${assay_cudnn_LIBRARY}" KIND SHARED)
assay_cuda_target(nvrtc HEADERS "${assay_nvrtc_HEADERS}" LIBRARY "${assay_nvrtc_LIBRARY}" KIND SHARED)
assay_cuda_target(cudnn_frontend HEADERS "${assay_frontend_HEADERS}" LINKS assay::cudnn assay::nvrtc)
if(assay_cupti_LIBRARY)
  get_filename_component(folder "${assay_cupti_LIBRARY}" DIRECTORY)
  list(APPEND ASSAY_CUDA_LIBRARY_FOLDERS "${folder}")
  list(REMOVE_DUPLICATES ASSAY_CUDA_LIBRARY_FOLDERS)
endif()
set(assay_nccl_text "no NCCL")
if(assay_nccl_LIBRARY)
  assay_cuda_target(nccl HEADERS "${assay_nccl_HEADERS}" LIBRARY "${assay_nccl_LIBRARY}" KIND SHARED)
  set(assay_nccl_text "NCCL ${assay_nccl_LIBRARY}")
endif()
set(ASSAY_HAVE_CUDA TRUE)
message(STATUS "assay: CUDA device with ${assay_nvcc} ${assay_nvcc_version} for ${CMAKE_CUDA_ARCHITECTURES}, cuDNN "
               "${assay_cudnn_LIBRARY}, cudnn-frontend ${assay_frontend_version}, ${assay_nccl_text}")
