// gpumemtrace repair: a whole recording of what is left of a cut or damaged one.

#include "format/repair.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct Options {
  std::string input, output;
  bool force = false;
};

absl::StatusOr<int> Repair(const Options& options) {
  absl::StatusOr<OutputFile> output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  absl::StatusOr<std::unique_ptr<format::Sink>> sink =
      format::FileSink(output->path(), format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  const absl::StatusOr<format::Repaired> repaired =
      format::RepairRecording(options.input, *std::move(sink));
  if (!repaired.ok()) return repaired.status();
  absl::Status status = output->Commit();
  if (!status.ok()) return status;
  fmt::print("{}: {} kept, {} lost in {}\n", options.output, Plural(repaired->chunks, "chunk"),
             Bytes(repaired->bytes_lost), Plural(repaired->gaps, "gap"));
  return kDone;
}

}  // namespace

void AddRepair(Program& program) {
  auto options = std::make_shared<Options>();
  Command command = program.AddVerb("repair", "Make a whole recording of a cut or damaged one",
                                    [options](const Terminal&) { return Repair(*options); });
  command.Argument("FILE", &options->input, "a recording");
  command.Argument("OUT", &options->output, "the mended copy to write");
  command.Flag("--force", &options->force, "overwrite OUT");
}

}  // namespace gmt::cli
