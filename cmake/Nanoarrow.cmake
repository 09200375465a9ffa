# gmt::nanoarrow: the library that encodes Arrow streams, compiled from the sources that
# scripts/setup unpacks. NANOARROW_ROOT selects another directory of the same layout.

find_path(NANOARROW_SOURCE_DIR nanoarrow/nanoarrow_ipc.h
  HINTS ${NANOARROW_ROOT} ENV NANOARROW_ROOT
  PATHS ${gmt_cache}/nanoarrow
  PATH_SUFFIXES src NO_CMAKE_SYSTEM_PATH)
if(NOT NANOARROW_SOURCE_DIR)
  message(FATAL_ERROR "The sources of nanoarrow were not found. Get them with: scripts/setup   (or set NANOARROW_ROOT)")
endif()
set(flatcc_dir ${NANOARROW_SOURCE_DIR}/../flatcc)

file(STRINGS ${NANOARROW_SOURCE_DIR}/../versions NANOARROW_VERSION REGEX "^nanoarrow==")
string(REGEX REPLACE "^nanoarrow==" "" NANOARROW_VERSION "${NANOARROW_VERSION}")
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)\\.([0-9]+)" parts "${NANOARROW_VERSION}")
set(NANOARROW_VERSION_MAJOR ${CMAKE_MATCH_1})
set(NANOARROW_VERSION_MINOR ${CMAKE_MATCH_2})
set(NANOARROW_VERSION_PATCH ${CMAKE_MATCH_3})
configure_file(${NANOARROW_SOURCE_DIR}/nanoarrow/nanoarrow_config.h.in
               ${PROJECT_BINARY_DIR}/nanoarrow/nanoarrow/nanoarrow_config.h)

set(nanoarrow_sources)
foreach(source common/array common/array_stream common/schema common/utils ipc/codecs ipc/decoder ipc/encoder ipc/reader)
  list(APPEND nanoarrow_sources ${NANOARROW_SOURCE_DIR}/nanoarrow/${source}.c)
endforeach()
foreach(source builder emitter refmap verifier)
  list(APPEND nanoarrow_sources ${flatcc_dir}/src/runtime/${source}.c)
endforeach()
add_library(gmt_nanoarrow STATIC ${nanoarrow_sources})
set_target_properties(gmt_nanoarrow PROPERTIES C_STANDARD 11)
target_compile_options(gmt_nanoarrow PRIVATE -w)
target_include_directories(gmt_nanoarrow SYSTEM PUBLIC
  ${NANOARROW_SOURCE_DIR} ${flatcc_dir}/include ${PROJECT_BINARY_DIR}/nanoarrow)
add_library(gmt::nanoarrow ALIAS gmt_nanoarrow)
