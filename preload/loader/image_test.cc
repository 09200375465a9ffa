// Checks what the library's file requires of the processes into which it is loaded.

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

using testing::HasSubstr;
using testing::IsSubsetOf;
using testing::Not;
using testing::UnorderedElementsAreArray;

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

constexpr const char* kNodes[] = {"@libcudart.so.11.0", "@libcudart.so.12", "@libcudart.so.13",
                                  "@libcudart.so.14", "@@libcudart.so.15"};

std::set<std::string> ExpectedExports() {
  std::set<std::string> names = {"InitializeInjectionNvtx2",
                                 "InitializeInjectionNvtxExtension",
                                 "dlsym",
                                 "dlvsym",
                                 "dlclose",
                                 "gpumemtrace_cupti_status",
                                 "InitializeInjection",
                                 "gpumemtrace_catching",
                                 "gpumemtrace_mark",
                                 "gpumemtrace_patch",
                                 "gpumemtrace_python_status",
                                 "gpumemtrace_range_begin",
                                 "gpumemtrace_range_end",
                                 "gpumemtrace_recording",
                                 "gpumemtrace_snapshot",
                                 "gpumemtrace_start",
                                 "gpumemtrace_attach",
                                 "gpumemtrace_undo_attach"};
  std::set<std::string> runtime;
#define GMT_RUNTIME(name, parameters, arguments, event) runtime.insert(#name);
#define GMT_DRIVER(name, query, version, parameters, arguments, event) names.insert(#name);
#include "preload/hooks/hook_table.inc"
#define GMT_TORCH(name, mangled, result, parameters, arguments) names.insert(mangled);
#include "preload/torch/hook_table.inc"
  for (const std::string& name : runtime) {
    for (const char* node : kNodes) names.insert(name + node);
  }
#define GMT_CUPTI(name, parameters, arguments, use) \
  names.insert({#name "@libcupti.so.12", #name "@@libcupti.so.13"});
#include "preload/cupti/hook_table.inc"
  return names;
}

TEST(ImageTest, NeedsOnlyLibc) {
  const auto needed =
      Lines(Output("readelf -dW " GMT_SHIM_PATH " | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'"));
  EXPECT_THAT(needed, IsSubsetOf({"libc.so.6", "libdl.so.2"}));
}

TEST(ImageTest, ExportsOnlyTheHookTableAndItsApi) {
  const auto exports =
      Lines(Output("nm -D --defined-only " GMT_SHIM_PATH " | awk '$2 != \"A\" {print $3}'"));
  EXPECT_THAT(exports, UnorderedElementsAreArray(ExpectedExports()));
}

TEST(ImageTest, LoadsWithGlibc2_28) {
  const auto versions = Lines(Output("objdump -T " GMT_SHIM_PATH " | grep -o 'GLIBC_2\\.[0-9]*'"));
  for (const std::string& version : versions) {
    EXPECT_LE(std::stoi(version.substr(version.find('.') + 1)), 28) << version;
  }
}

// It may also be preloaded into musl programs.
TEST(ImageTest, DoesNotRequireGlibcOnlyFunctions) {
  const auto strong = Lines(Output("nm -D --undefined-only " GMT_SHIM_PATH
                                   " | awk '$1 == \"U\" {sub(/@.*/, \"\", $2); print $2}'"));
  for (const char* name : {"__register_atfork", "dladdr1", "dlinfo", "dlmopen", "dlvsym",
                           "gnu_get_libc_version", "on_exit", "pthread_setattr_default_np"}) {
    EXPECT_EQ(strong.count(name), 0u) << name;
  }
}

TEST(ImageTest, ThreadLocalStorageIsSmallAndInitialExec) {
  const std::string tls = Output("readelf -lW " GMT_SHIM_PATH " | awk '$1 == \"TLS\" {print $6}'");
  EXPECT_LE(std::stoul(tls, nullptr, 16), 64u);
  EXPECT_THAT(Output("readelf -dW " GMT_SHIM_PATH), HasSubstr("STATIC_TLS"));
}

TEST(ImageTest, RunsNothingWhenLoaded) {
  // One entry: the compiler's own frame_dummy.
  const std::string size = Output("readelf -SW " GMT_SHIM_PATH
                                  " | sed 's/\\[ *//' | awk '$2 == \".init_array\" {print $6}'");
  EXPECT_EQ(std::stoul(size, nullptr, 16), sizeof(void*));
}

TEST(ImageTest, ContainsNothingOfTheCxxRuntime) {
  const std::string symbols = Output("nm -C " GMT_SHIM_PATH);
  EXPECT_THAT(symbols, Not(HasSubstr("__cxa_throw")));
  EXPECT_THAT(symbols, Not(HasSubstr("_Unwind_RaiseException")));
  EXPECT_THAT(symbols, Not(HasSubstr("operator new")));
}

}  // namespace
}  // namespace gmt::preload
