// gpumemtrace oom: explains why a program ran out of memory, and what would help.

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/load_trace.h"
#include "cli/oom_answer.h"
#include "cli/oom_text.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct OomArguments {
  std::string file;
  bool json = false;
};

absl::StatusOr<int> Oom(const OomArguments& options, const Terminal& terminal) {
  auto loaded = LoadTrace(options.file);
  if (!loaded.ok()) return loaded.status();
  const analysis::Examination examination((*loaded)->trace, (*loaded)->definitions);
  const analysis::OomReport report = ExplainOomOf(examination);
  if (options.json) {
    fmt::print("{}", OomJson(report, examination, options.file));
    return kDone;
  }
  SourceLines sources((*loaded)->trace.start_unix_ns);
  fmt::print("{}", OomText(report, examination, sources, options.file, terminal));
  for (const std::string& lack : (*loaded)->lacks) PrintNote(lack);
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
