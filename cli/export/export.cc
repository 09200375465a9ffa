// gpumemtrace export: writes a recording in the format of another tool (cli/export/formats.h).

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "answers/sql/tables.h"
#include "cli/command.h"
#include "cli/export/format_list.h"
#include "cli/export/formats.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const ExportFormat& format : ExportFormats()) names.emplace_back(format.name);
  return names;
}

std::vector<std::string> TableNames() {
  std::vector<std::string> names = {"all"};
  for (const answers::sql::Table& table : answers::sql::Tables()) names.emplace_back(table.name);
  return names;
}

// Returns the names of the formats that take an option.
std::string FormatsWith(const std::string& option) {
  std::vector<std::string> names;
  for (const ExportFormat& format : ExportFormats()) {
    if (std::find(format.options.begin(), format.options.end(), option) != format.options.end())
      names.emplace_back(format.name);
  }
  return absl::StrJoin(names, ", ");
}

absl::Status CheckOptions(const ExportArguments& arguments, const ExportFormat& format) {
  const std::pair<const char*, bool> given[] = {
      {"--at", !arguments.at.empty()},
      {"--heap", !arguments.heap.empty()},
      {"--table", !arguments.tables.empty()},
      {"--device", arguments.device.has_value()},
      {"--from/--to", arguments.window.is_given()},
      {"--max-events", !arguments.max_events.empty()},
      {"--keep", !arguments.keep.empty()},
      {"--max-mb", !arguments.max_mb.empty()},
      {"--raw-frames", arguments.frames.raw},
      {"--frames-rules", !arguments.frames.rules_file.empty()},
  };
  for (const auto& [option, is_given] : given) {
    if (!is_given ||
        std::find(format.options.begin(), format.options.end(), option) != format.options.end()) {
      continue;
    }
    return UsageError(absl::StrCat("--format ", format.name, " does not take ", option,
                                   "; formats that do: ", FormatsWith(option)));
  }
  if (!format.takes_several && arguments.files.size() != 1)
    return UsageError(absl::StrCat("--format ", format.name, " takes one FILE"));
  return absl::OkStatus();
}

absl::StatusOr<int> RunExport(const ExportArguments& given) {
  if (given.list) {
    given.json ? PrintFormatsAsJson() : PrintFormats();
    return kDone;
  }
  if (given.json) return UsageError("--json is for --list");
  if (given.files.empty()) return UsageError("FILE is required: the recording to export");
  if (given.format.empty())
    return UsageError(absl::StrCat("--format is required: ", absl::StrJoin(FormatNames(), ", ")));
  if (given.output.empty()) return UsageError("-o is required: the file to write");
  const auto& formats = ExportFormats();
  const auto format = std::find_if(formats.begin(), formats.end(),
                                   [&](const ExportFormat& f) { return f.name == given.format; });
  if (absl::Status status = CheckOptions(given, *format); !status.ok()) return status;
  if (format->run == ExportStripped) return ExportStripped(given);
  auto stripped = StrippedFiles::Make(given.strip, given.files);
  if (!stripped.ok()) return stripped.status();
  ExportArguments arguments = given;
  arguments.files = stripped->files();
  return format->run(arguments);
}

}  // namespace

void AddExport(Program& program) {
  auto arguments = std::make_shared<ExportArguments>();
  Command command = program.AddVerb("export", "Convert a recording to the format of another tool",
                                    [arguments](const Terminal&) { return RunExport(*arguments); });
  command.OptionalArguments("FILE", &arguments->files, "recording; several for some formats");
  command.Choice("--format", &arguments->format, FormatNames(),
                 "format of the file; --list describes them");
  command.Option("-o,--output", &arguments->output, "FILE", "file to write (required)");
  command.Flag("--list", &arguments->list,
               "list the formats with what each keeps and drops, and write nothing");
  command.DeviceOption(&arguments->device, "only this GPU");
  command.Option("--at", &arguments->at, "WHEN",
                 "profiles: peak (default), end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Suggest("--at", {"peak", "end", "oom"});
  command.Option(
      "--heap", &arguments->heap, "NAME",
      "only this heap: driver, host, pytorch, ... (default of profiles: a framework's blocks, else "
      "driver)");
  command.Suggest("--heap", {"driver", "host", "pytorch", "nvtx"});
  command.Option("--table", &arguments->tables, "NAME",
                 "arrow, csv, jsonl: table to write (default memory); arrow: several times for one "
                 "stream after the other, or all");
  command.Suggest("--table", TableNames());
  arguments->window.AddTo(command, "torch: start of the exported history",
                          "end of it, and its moment");
  command.Option("--max-events", &arguments->max_events, "N",
                 "torch: maximum number of events per GPU; 0: all (default 100000)");
  command.Choice("--keep", &arguments->keep, {"newest", "largest"},
                 "torch: beyond --max-events keep the newest events (default), or the largest "
                 "allocations");
  command.Option(
      "--max-mb", &arguments->max_mb, "N",
      "html: maximum size in MB; the smallest blocks are left out (default 5 to 20, by events)");
  arguments->strip.AddTo(command);
  command.Flag("--force", &arguments->force, "overwrite an existing FILE");
  arguments->frames.AddTo(command);
  command.Flag("--json", &arguments->json, "print --list as JSON");
}

}  // namespace gmt::cli
