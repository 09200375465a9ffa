#include "cli/record/next_step.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_split.h"

namespace gmt::cli {
namespace {

bool IsOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return false;
  const std::vector<std::string> directories = absl::StrSplit(path, ':');
  return std::ranges::any_of(directories, [&name](const std::string& directory) {
    // An empty entry is the working directory.
    const std::string file = (directory.empty() ? "." : directory) + "/" + name;
    return access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file);
  });
}

std::string PathOfThisProgram() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "gpumemtrace" : path.string();
}

}  // namespace

ShellCommands FindCommands() {
  // The program that PATH has may be a script that starts this one, as in the wheel, so their files
  // are not compared.
  return {.gpumemtrace = IsOnPath("gpumemtrace") ? "gpumemtrace" : PathOfThisProgram(),
          .python = IsOnPath("python")    ? "python"
                    : IsOnPath("python3") ? "python3"
                                          : ""};
}

std::string NextStep(const std::vector<Check>& checks, const ShellCommands& commands) {
  const auto failing = std::ranges::find(checks, Check::State::kFails, &Check::state);
  if (failing != checks.end()) {
    return fmt::format("correct \"{}\" as its line says, then: {} doctor", failing->name,
                       commands.gpumemtrace);
  }
  const auto driver = std::ranges::find(checks, kDriverCheck, &Check::name);
  if (driver != checks.end() && driver->state != Check::State::kWorks) {
    return fmt::format("copy a recording or a PyTorch snapshot here, then: {} view FILE",
                       commands.gpumemtrace);
  }
  return fmt::format("{} run -- {}", commands.gpumemtrace,
                     commands.python.empty() ? "./program" : commands.python + " train.py");
}

}  // namespace gmt::cli
