// gpumemtrace oom: explains why a program ran out of memory, and what would help.

#include <fmt/format.h>

#include <memory>

#include "answers/oom/oom_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct OomArguments {
  std::string file;
  bool json = false;
};

absl::StatusOr<int> Oom(const OomArguments& options, const Terminal& terminal) {
  const auto recording = OpenRecording(options.file, {.text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const answers::OomAnswer answer(**recording);
  fmt::print("{}", options.json ? answer.Json() : answer.Text(terminal));
  if (options.json) return kDone;
  for (const std::string& lack : (*recording)->lacks()) PrintNote(lack);
  return kDone;
}

}  // namespace

void AddOom(Program& program) {
  auto options = std::make_shared<OomArguments>();
  Command command =
      program.AddVerb("oom", "Explain why the program ran out of memory, and what would help",
                      [options](const Terminal& terminal) { return Oom(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.Flag("--json", &options->json, "print JSON, with all evidence");
}

}  // namespace gmt::cli
