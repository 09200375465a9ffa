// gpumemtrace repair: makes a complete recording from what is left of a truncated or damaged one.

#include "format/repair.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "answers/json.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct RepairArguments {
  std::string input, output;
  bool force = false, json = false;
};

std::string InWords(const format::RepairLoss& loss) {
  const std::string place = absl::StrCat("at byte ", Count(loss.offset));
  if (loss.bytes == 0) return absl::StrCat("whole chunks, expected ", place);
  const std::string bytes = absl::StrCat(Bytes(loss.bytes), " ", place);
  if (loss.what == "cut")
    return absl::StrCat(bytes, ", where the file was truncated inside a chunk");
  const std::string when = loss.to_t_ns > loss.from_t_ns
                               ? absl::StrCat(", events between ", Duration(loss.from_t_ns),
                                              " and ", Duration(loss.to_t_ns))
                               : "";
  return absl::StrCat(bytes, " (", loss.what, ")", when);
}

void PrintText(const RepairArguments& options, const format::Repaired& repaired) {
  constexpr size_t kMaxRows = 20;
  fmt::print("{}: {}; {} and {} kept\n", options.output,
             repaired.was_whole() ? absl::StrCat("a copy, because ", options.input, " is undamaged")
                                  : std::string("complete"),
             Plural(repaired.chunks, "chunk"), Plural(repaired.events, "event"));
  for (size_t i = 0; i < repaired.lost.size() && i < kMaxRows; ++i)
    fmt::print("  lost  {}\n", InWords(repaired.lost[i]));
  if (repaired.lost.size() > kMaxRows)
    fmt::print("  lost  in {} more places\n", Count(repaired.lost.size() - kMaxRows));
  if (repaired.headers_made > 0)
    fmt::print("  lost  {}: the recorded process and its start time are unknown\n",
               Plural(repaired.headers_made, "header"));
  if (repaired.ends_made > 0)
    fmt::print("  rebuilt  the index and footer of {}\n", Plural(repaired.ends_made, "recording"));
  if (repaired.bytes_behind > 0)
    fmt::print("  dropped  {} after its end, which were not part of it\n",
               Bytes(repaired.bytes_behind));
  if (repaired.segments > 1)
    fmt::print("  it consists of {} concatenated recordings\n", Count(repaired.segments));
}

void PrintAsJson(const RepairArguments& options, const format::Repaired& repaired) {
  nlohmann::ordered_json out = answers::NewJson("repair", options.input);
  out["output"] = options.output;
  out["was_whole"] = repaired.was_whole();
  out["chunks"] = repaired.chunks;
  out["events"] = repaired.events;
  out["recordings"] = repaired.segments;
  out["gaps"] = repaired.gaps;
  out["bytes_lost"] = repaired.bytes_lost;
  out["bytes_behind_the_end"] = repaired.bytes_behind;
  out["headers_made"] = repaired.headers_made;
  out["ends_made"] = repaired.ends_made;
  out["lost"] = nlohmann::ordered_json::array();
  for (const format::RepairLoss& loss : repaired.lost) {
    out["lost"].push_back({{"offset", loss.offset},
                           {"bytes", loss.bytes},
                           {"what", loss.what},
                           {"from_t_ns", loss.from_t_ns},
                           {"to_t_ns", loss.to_t_ns}});
  }
  PrintJson(out);
}

absl::StatusOr<int> Repair(const RepairArguments& options) {
  absl::StatusOr<OutputFile> output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  absl::StatusOr<std::unique_ptr<format::Sink>> sink =
      format::FileSink(output->path(), format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  const absl::StatusOr<format::Repaired> repaired =
      format::RepairRecording(options.input, *std::move(sink));
  if (!repaired.ok()) return repaired.status();
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  if (options.json) {
    PrintAsJson(options, *repaired);
  } else {
    PrintText(options, *repaired);
  }
  return kDone;
}

}  // namespace

void AddRepair(Program& program) {
  auto options = std::make_shared<RepairArguments>();
  Command command = program.AddVerb("repair",
                                    "Make a complete recording from a truncated or "
                                    "damaged one",
                                    [options](const Terminal&) { return Repair(*options); });
  command.Argument("FILE", &options->input, "a recording");
  command.Argument("OUT", &options->output, "the repaired copy to write");
  command.Flag("--force", &options->force, "overwrite OUT");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
