# gmt::cuda_headers: the public headers of CUDA, CUPTI and NVML, without their libraries. Searched
# in CUDAToolkit_ROOT, /usr/local/cuda, the system, and the directory where scripts/setup unpacks
# the wheels.

if(DEFINED ENV{XDG_CACHE_HOME})
  set(gmt_cache $ENV{XDG_CACHE_HOME}/gpumemtrace)
else()
  set(gmt_cache $ENV{HOME}/.cache/gpumemtrace)
endif()

find_path(CUDA_INCLUDE_DIR cuda_runtime_api.h
  HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_HOME
  PATHS /usr/local/cuda ${gmt_cache}/cuda-headers
  PATH_SUFFIXES include targets/x86_64-linux/include)
if(NOT CUDA_INCLUDE_DIR)
  message(FATAL_ERROR "The CUDA headers were not found. Get them with: scripts/setup   (or set CUDAToolkit_ROOT)")
endif()

add_library(gmt_cuda_headers INTERFACE)
target_include_directories(gmt_cuda_headers SYSTEM INTERFACE ${CUDA_INCLUDE_DIR})
add_library(gmt::cuda_headers ALIAS gmt_cuda_headers)
