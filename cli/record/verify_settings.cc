#include "cli/record/verify_settings.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/examination/failures.h"
#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/allocator_settings.h"
#include "cli/open_recording.h"
#include "cli/record/child_process.h"
#include "cli/terminal.h"

namespace gmt::cli {
namespace {

// Removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = std::filesystem::temp_directory_path() / "gpumemtrace-verify.XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }  // empty if it could not be created

 private:
  std::string path_;
};

// The variable with which the recorded process was configured, and its new value.
std::pair<std::string, std::string> Variable(const analysis::Trace& trace,
                                             const std::string& settings) {
  const analysis::NamedText* recorded =
      analysis::AllocatorVariable(trace.settings, analysis::TorchVersionOf(trace.libraries));
  if (recorded == nullptr) return {"PYTORCH_CUDA_ALLOC_CONF", settings};
  const char* separator = recorded->text.empty() ? "" : ",";
  return {recorded->name, absl::StrCat(recorded->text, separator, settings)};
}

}  // namespace

absl::StatusOr<answers::RealRun> RunWithSettings(const analysis::Trace& trace, int32_t device,
                                                 const std::string& settings) {
  if (trace.argv.empty())
    return absl::FailedPreconditionError("--verify: the recording does not contain the command");
  if (trace.world_size.value_or(1) > 1) {
    return absl::FailedPreconditionError(
        "--verify: this is one of several ranks; run the job again with the setting, and compare "
        "with: gpumemtrace ranks");
  }
  const ScratchFolder folder;
  if (folder.path().empty())
    return absl::UnavailableError(
        absl::StrCat("--verify: no temporary directory: ", std::strerror(errno)));
  const std::string output = folder.path() + "/run.gmt";
  const auto variable = Variable(trace, settings);
  PrintNote(fmt::format("runs {}={} {}", variable.first, variable.second,
                        absl::StrJoin(trace.argv, " ")));
  std::vector<std::string> command = {
      std::filesystem::read_symlink("/proc/self/exe"), "run", "--quiet", "-o", output, "--"};
  command.insert(command.end(), trace.argv.begin(), trace.argv.end());
  const ChildExit exit =
      ChildProcess(command, {variable}, ChildProcess::Output::kStandardError).Wait();
  const auto recording = OpenRecording(output);
  if (!recording.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("--verify: the command ended with {} and was not recorded", exit.ShellCode()));
  }
  const auto history = analysis::HistoryOf((*recording)->examination(), device);
  if (!history.ok())
    return absl::FailedPreconditionError(
        absl::StrCat("--verify: ", std::string(history.status().message())));
  const bool failed = analysis::FindFailures((*recording)->examination()).count > 0;
  if (exit.ShellCode() != 0 && !failed) {
    PrintNote(fmt::format("the command ended with {}; its peak may be that of a part of the run",
                          exit.ShellCode()));
  }
  return answers::RealRun{history->peak_reserved, failed};
}

}  // namespace gmt::cli
