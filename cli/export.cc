// gpumemtrace export: a recording in the format of another tool.

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/frames.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/load_trace.h"
#include "cli/output_file.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "interop/torch_snapshot.h"

namespace gmt::cli {
namespace {

struct Options {
  std::string file, format, output;
  bool force = false;
  FrameOptions frames;
};

absl::StatusOr<int> RunExport(const Options& options) {
  if (options.format.empty()) return UsageError("--format: which? torch");
  const auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  auto loaded = LoadTrace(options.file);
  if (!loaded.ok()) return loaded.status();
  std::ofstream stream(output->path(), std::ios::binary | std::ios::trunc);
  const interop::StackFrames frames = [&](uint32_t stack) {
    auto all = analysis::DescribeStack((*loaded)->definitions, stack, *rules);
    return options.frames.raw ? all : analysis::WithoutNoise(std::move(all));
  };
  const interop::TorchSnapshotSummary summary =
      interop::WriteTorchSnapshot((*loaded)->trace, frames, stream);
  stream.close();
  if (!stream) return absl::UnknownError(absl::StrCat(options.output, ": cannot be written"));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: {}, {} with {}", options.output, Plural(summary.events, "event"),
                        Plural(summary.segments, "segment"), Plural(summary.blocks, "block")));
  if (summary.host_bytes_left_out > 0) {
    PrintNote(fmt::format("{} of host memory have no place in this format",
                          Bytes(summary.host_bytes_left_out)));
  }
  if (summary.unmapped_bytes_left_out > 0) {
    PrintNote(fmt::format("{} of physical memory without an address have no place in this format",
                          Bytes(summary.unmapped_bytes_left_out)));
  }
  return kDone;
}

}  // namespace

void AddExport(Program& program) {
  auto options = std::make_shared<Options>();
  Command command = program.AddVerb("export", "Give the recording to another tool",
                                    [options](const Terminal&) { return RunExport(*options); });
  command.Argument("FILE", &options->file, "recording");
  command.Choice("--format", &options->format, {"torch"},
                 "torch: for pytorch.org/memory_viz and torch.cuda._memory_viz");
  command.RequiredOption("-o,--output", &options->output, "FILE", "where to");
  command.Flag("--force", &options->force, "overwrite an existing FILE");
  options->frames.AddTo(command);
}

}  // namespace gmt::cli
