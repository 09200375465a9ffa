# gmt_library(NAME [SEPARATE] SRCS... DEPS...): the static library of a directory, gmt_NAME,
#   linked as gmt::NAME.
# gmt_test(ROOM [SEPARATE] SRCS... DEPS...): the test executable of a directory, ROOM_test.
# gmt_benchmark(ROOM SRCS... DEPS...): its benchmarks, ROOM_benchmark.
# gmt_measuring_program(NAME SRCS... DEPS...): a benchmark with a main() of its own.
# gmt_fuzzer(NAME SRCS... DEPS...): a libFuzzer program, NAME_fuzz, in the preset `fuzz`.
# SEPARATE: compiles each source alone even with GMT_JOINED_UNITS (cmake/JoinedUnits.cmake).
# Include paths start at the root of the tree; warning options come from the target gmt_warnings.

option(GMT_STATIC_DEPENDENCIES "Link abseil, protobuf, fmt, spdlog and libstdc++ statically (the bundle)" OFF)
set(GMT_SANITIZE "" CACHE STRING "Value of -fsanitize= for everything but the preloaded library")

option(GMT_BUILD_FUZZERS "libFuzzer programs (needs clang)" OFF)

# Test sources are compiled often and run once; optimising them took two thirds of the build time
# of tests.
set(GMT_TEST_OPTIMIZATION "" CACHE STRING "Compiler option for the sources of unit tests, such as -O0")

add_library(gmt_warnings INTERFACE)
target_compile_options(gmt_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlaps in `"-" + std::string(...)` that do not exist (GCC bug 105651).
  target_compile_options(gmt_warnings INTERFACE -Wno-restrict)
  # With -O3 it also reports overflows there.
  target_compile_options(gmt_warnings INTERFACE "$<$<CONFIG:Release>:-Wno-stringop-overflow;-Wno-array-bounds>")
endif()

# Linked into everything but the preloaded library.
add_library(gmt_sanitize INTERFACE)
if(GMT_SANITIZE)
  target_compile_options(gmt_sanitize INTERFACE
    -fsanitize=${GMT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(gmt_sanitize INTERFACE -fsanitize=${GMT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND GMT_SANITIZE MATCHES address)
    # As GCC defines it; clang does only from version 21 on.
    target_compile_definitions(gmt_sanitize INTERFACE __SANITIZE_ADDRESS__=1)
  endif()
endif()

if(GMT_BUILD_FUZZERS)
  target_compile_options(gmt_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(gmt_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "SEPARATE" "" "SRCS;DEPS")
  if(ARG_SRCS)
    add_library(gmt_${name} STATIC ${ARG_SRCS})
    target_include_directories(gmt_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(gmt_${name} PUBLIC ${ARG_DEPS} gmt_sanitize PRIVATE gmt_warnings)
    if(NOT ARG_SEPARATE)
      gmt_join_units(gmt_${name})
    endif()
  else()
    add_library(gmt_${name} INTERFACE)
    target_include_directories(gmt_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(gmt_${name} INTERFACE ${ARG_DEPS} gmt_sanitize)
  endif()
  add_library(gmt::${name} ALIAS gmt_${name})
endfunction()

function(gmt_test room)
  if(NOT GMT_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "SEPARATE" "" "SRCS;DEPS")
  add_executable(${room}_test ${ARG_SRCS})
  set_target_properties(${room}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_link_libraries(${room}_test PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main gmt_warnings gmt_sanitize)
  target_compile_options(${room}_test PRIVATE ${GMT_TEST_OPTIMIZATION})
  if(ARG_SEPARATE)
    gmt_reuse_precompiled(${room}_test)
  else()
    gmt_join_units(${room}_test)
  endif()
  gtest_discover_tests(${room}_test TEST_PREFIX ${room}. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${room})
endfunction()

# Not part of default builds; the target `benchmarks` builds all of them.
if(GMT_BUILD_BENCHMARKS)
  add_custom_target(benchmarks)
endif()

function(gmt_measuring_program name)
  if(NOT GMT_BUILD_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SRCS;DEPS")
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmark)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} gmt_warnings)
  gmt_join_units(${name})
  add_dependencies(benchmarks ${name})
endfunction()

function(gmt_benchmark room)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SRCS;DEPS")
  gmt_measuring_program(${room}_benchmark SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} benchmark::benchmark_main)
endfunction()

function(gmt_fuzzer name)
  if(NOT GMT_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SRCS;DEPS")
  add_executable(${name}_fuzz ${ARG_SRCS})
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_DEPS} gmt_warnings gmt_sanitize)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
endfunction()
