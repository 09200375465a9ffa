// gpumemtrace export: writes a recording in the format of another tool.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"
#include "analysis/stacks/frames.h"
#include "analysis/text.h"
#include "answers/sql/query.h"
#include "cli/command.h"
#include "cli/export_html.h"
#include "cli/frame_options.h"
#include "cli/open_recording.h"
#include "cli/output_file.h"
#include "cli/strip_options.h"
#include "cli/verbs.h"
#include "cli/window_options.h"
#include "interop/pprof/recording_profile.h"
#include "interop/torch/torch_snapshot.h"

namespace gmt::cli {
namespace {

using interop::TorchSelection;

// The PyTorch viewer holds several copies of the file in memory.
constexpr uint64_t kHeavyFile = 256 << 20;

struct ExportArguments {
  std::vector<std::string> files;
  std::string file, format, output, keep = "newest", at, heap;
  int64_t device = -1;
  std::string max_events, max_mb;
  bool force = false;
  WindowOptions window;
  FrameOptions frames;
  StripOptions strip;
};

absl::StatusOr<TorchSelection> Selection(const ExportArguments& options) {
  TorchSelection selection;
  auto window = options.window.Window();
  if (!window.ok()) return window.status();
  if (!options.max_events.empty() && !absl::SimpleAtoi(options.max_events, &selection.max_events)) {
    return UsageError("--max-events: expected a number; 0 for all");
  }
  selection.window = *window;
  if (options.keep == "largest") selection.keep = TorchSelection::Keep::kLargest;
  if (options.device >= 0) selection.device = static_cast<int32_t>(options.device);
  return selection;
}

// Prints what is left out, which a reader of the file could not notice.
void PrintWhatIsLeftOut(const interop::TorchDeviceSummary& device) {
  if (device.rows_left > 0) {
    PrintNote(fmt::format(
        "GPU {}: the smallest {} (up to {}) left out; {} of {} written. "
        "To write all: --max-events 0",
        device.device, Plural(device.rows_left, "allocation"), Bytes(device.largest_left),
        Count(device.events), Plural(device.events_in_window, "event")));
  } else if (device.events < device.events_in_window) {
    PrintNote(
        fmt::format("GPU {}: the newest {} of {} written, from {:.3f} s on. To write all: "
                    "--max-events 0; to cover the whole time: --keep largest",
                    device.device, Count(device.events), Plural(device.events_in_window, "event"),
                    static_cast<double>(device.first_t_ns.value_or(0)) / 1e9));
  }
  if (device.events > interop::kTorchMaxEvents) {
    PrintNote(fmt::format(
        "GPU {} has {}: with more than {}, memory_viz takes minutes or crashes the "
        "browser. Reduce them with --max-events, --from and --to",
        device.device, Plural(device.events, "event"), Count(interop::kTorchMaxEvents)));
  }
}

void PrintWhatCannotBeRepresented(const interop::TorchSnapshotSummary& summary) {
  if (summary.host_bytes_left_out > 0) {
    PrintNote(fmt::format("{} of host memory are left out: the format has no host memory",
                          Bytes(summary.host_bytes_left_out)));
  }
  if (summary.unmapped_bytes_left_out > 0) {
    PrintNote(
        fmt::format("{} of physical memory without an address are left out: the format "
                    "needs one",
                    Bytes(summary.unmapped_bytes_left_out)));
  }
  const interop::TorchModelCounts& counts = summary.counts;
  if (counts.left_out > 0) {
    PrintNote(
        fmt::format("{} left out: inside other blocks, or at addresses that the viewer "
                    "cannot represent",
                    Plural(counts.left_out, "allocation")));
  }
  if (counts.moved > 0) {
    PrintNote(fmt::format("{} shown at addresses from 2^52 on: CUDA arrays have no address",
                          Plural(counts.moved, "array")));
  }
  if (counts.tries > 0) {
    PrintNote(
        fmt::format("{} of PyTorch's allocator left out: the allocator retried or reported out of "
                    "memory, which this format cannot represent",
                    Plural(counts.tries, "failed call")));
  }
  if (counts.made_up > 0) {
    PrintNote(
        fmt::format("{} added: the recording does not have them, but later events show that they "
                    "happened",
                    Plural(counts.made_up, "free")));
  }
}

absl::Status CheckDevice(const ExportArguments& options, const analysis::Trace& trace) {
  if (options.device < 0) return absl::OkStatus();
  std::set<int32_t> known;
  for (int32_t device : trace.rows.device) known.insert(device);
  for (const auto& failed : trace.failed) known.insert(failed.device);
  known.erase(analysis::kHostDevice);
  if (std::any_of(known.begin(), known.end(), [&](int32_t d) { return d == options.device; })) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(
      options.file, ": nothing was allocated on GPU ", options.device,
      known.empty() ? "" : absl::StrCat("; GPUs with allocations: ", absl::StrJoin(known, ", "))));
}

absl::StatusOr<int> RunHtml(const ExportArguments& options) {
  constexpr double kMaxMegabytes = 400;  // more than browsers can open in one file
  HtmlExport html{options.files, options.output, std::nullopt, options.force};
  double megabytes = 0;
  if (!options.max_mb.empty()) {
    const bool is_size = absl::SimpleAtod(options.max_mb, &megabytes) && megabytes > 0;
    if (!is_size || megabytes > kMaxMegabytes) {
      return UsageError(
          "--max-mb: expected a number of megabytes up to 400. For more: "
          "gpumemtrace view");
    }
    html.max_bytes = static_cast<uint64_t>(megabytes * 1e6);
  }
  if (absl::Status status = ExportHtml(html); !status.ok()) return status;
  return kDone;
}

absl::StatusOr<int> RunTorch(const ExportArguments& options) {
  auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto selection = Selection(options);
  if (!selection.ok()) return selection.status();
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  const auto loaded = OpenRecording(options.file, {.text = answers::TextForm::kAsRecorded});
  if (!loaded.ok()) return loaded.status();
  const answers::Recording& recording = **loaded;
  if (absl::Status status = CheckDevice(options, recording.trace()); !status.ok()) return status;
  // An imported snapshot is exported as a whole unless a limit is given.
  const bool is_snapshot = interop::IsImportedSnapshot(recording.trace());
  if (is_snapshot && options.max_events.empty()) selection->max_events = 0;
  std::ofstream stream(output->path(), std::ios::binary | std::ios::trunc);
  const interop::StackFrames frames = [&](uint32_t stack) {
    if (is_snapshot) return interop::StatedFrames(recording.definitions(), stack);
    auto all = analysis::DescribeStack(recording.definitions(), stack, *rules);
    return options.frames.raw ? all : analysis::WithoutNoise(std::move(all));
  };
  const interop::TorchSnapshotSummary summary = interop::WriteTorchSnapshot(
      recording.trace(), recording.definitions(), frames, *selection, stream);
  const auto size = stream.tellp();
  stream.close();
  if (!stream) return absl::UnknownError(absl::StrCat(options.output, ": cannot be written"));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: {}, {} with {}", options.output, Plural(summary.events, "event"),
                        Plural(summary.segments, "segment"), Plural(summary.blocks, "block")));
  for (const interop::TorchDeviceSummary& device : summary.devices) PrintWhatIsLeftOut(device);
  if (size > 0 && static_cast<uint64_t>(size) > kHeavyFile) {
    PrintNote(fmt::format("{} is a lot for memory_viz: it may lag or crash the browser",
                          Bytes(static_cast<uint64_t>(size))));
  }
  PrintWhatCannotBeRepresented(summary);
  return kDone;
}

absl::StatusOr<int> RunProfile(const ExportArguments& options) {
  interop::ProfileSelection selection;
  auto at = analysis::ParseAt(options.at.empty() ? "peak" : options.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  selection.at = *std::move(at);
  selection.heap = options.heap;
  if (options.device >= 0) selection.device = static_cast<int32_t>(options.device);
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  const auto loaded = OpenRecording(options.file, {.frames = *std::move(rules)});
  if (!loaded.ok()) return loaded.status();
  const answers::Recording& recording = **loaded;
  const auto profile = interop::MakeProfile(recording.examination(), selection);
  if (!profile.ok()) return recording.InFile(profile.status());
  std::ofstream stream(output->path(), std::ios::binary | std::ios::trunc);
  stream << profile->gzipped;
  stream.close();
  if (!stream) return absl::UnknownError(absl::StrCat(options.output, ": cannot be written"));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: {}; to view: go tool pprof -top -cum {}", options.output,
                        Plural(profile->samples, "stack"), options.output));
  if (profile->lacks_allocations_before) {
    PrintNote(fmt::format("{}: alloc_space and alloc_objects cover only the kept history",
                          options.output));
  }
  for (const std::string& lack : recording.lacks()) PrintNote(lack);
  return kDone;
}

absl::StatusOr<int> RunSqlite(const ExportArguments& options) {
  auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  const auto query = answers::sql::Query::Make();
  if (!query.ok()) return query.status();
  std::vector<std::unique_ptr<answers::Recording>> opened;
  for (const std::string& file : options.files) {
    auto recording =
        OpenRecording(file, {.frames = *rules, .text = answers::TextForm::kAsRecorded});
    if (!recording.ok()) return recording.status();
    opened.push_back(*std::move(recording));
    // A stripped copy has a temporary path, and the directories are private.
    (*query)->Add(*opened.back(),
                  options.strip.any() ? std::filesystem::path(file).filename().string() : file);
  }
  if (absl::Status status = (*query)->Export(output->path()); !status.ok())
    return absl::Status(status.code(), absl::StrCat(options.output, ": ", status.message()));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: to view: sqlite3 {} 'SELECT * FROM categories'", options.output,
                        options.output));
  for (const auto& recording : opened) {
    for (const std::string& lack : recording->lacks()) PrintNote(lack);
  }
  return kDone;
}

absl::StatusOr<int> RunStripped(const ExportArguments& options) {
  if (!options.strip.any()) {
    return UsageError("--format gmt needs --strip-paths, --strip-args or both");
  }
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  if (absl::Status status = options.strip.Copy(options.file, output->path()); !status.ok())
    return status;
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  return kDone;
}

absl::StatusOr<int> RunExport(const ExportArguments& given) {
  ExportArguments options = given;
  if (options.format.empty())
    return UsageError("--format is required: torch, html, pprof, sqlite or gmt");
  if (!options.at.empty() && options.format != "pprof")
    return UsageError("--at is for --format pprof; for torch, --to sets the moment");
  if (!options.heap.empty() && options.format != "pprof")
    return UsageError("--heap is for --format pprof");
  if (options.format == "pprof" && options.window.is_given())
    return UsageError("--format pprof exports one moment: use --at, not --from and --to");
  const bool has_selection = options.device >= 0 || options.window.is_given() ||
                             !options.max_events.empty() || !options.max_mb.empty();
  if (options.format == "sqlite" && has_selection) {
    return UsageError(
        "--format sqlite writes whole recordings: without --device, --from, --to, --max-events "
        "and --max-mb");
  }
  const bool takes_several = options.format == "html" || options.format == "sqlite";
  if (!takes_several && options.files.size() != 1)
    return UsageError(absl::StrCat("--format ", options.format, " takes one FILE"));
  options.file = options.files.front();
  if (options.format == "gmt") return RunStripped(options);
  auto stripped = StrippedFiles::Make(options.strip, options.files);
  if (!stripped.ok()) return stripped.status();
  options.files = stripped->files();
  options.file = options.files.front();
  if (options.format == "html") return RunHtml(options);
  if (options.format == "sqlite") return RunSqlite(options);
  return options.format == "pprof" ? RunProfile(options) : RunTorch(options);
}

}  // namespace

void AddExport(Program& program) {
  auto options = std::make_shared<ExportArguments>();
  Command command = program.AddVerb("export", "Convert a recording to the format of another tool",
                                    [options](const Terminal&) { return RunExport(*options); });
  command.Arguments("FILE", &options->files, "recording; several for html and sqlite");
  command.Choice("--format", &options->format, {"torch", "html", "pprof", "sqlite", "gmt"},
                 "torch: for pytorch.org/memory_viz and torch.cuda._memory_viz; html: the page of "
                 "`view` as one standalone file; pprof: for `go tool pprof`; sqlite: the tables "
                 "of `query`; gmt: a stripped recording to share");
  command.RequiredOption("-o,--output", &options->output, "FILE", "file to write");
  command.Option("--device", &options->device, "N", "only this GPU");
  command.Option("--at", &options->at, "WHEN",
                 "pprof: peak (default), end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Suggest("--at", {"peak", "end", "oom"});
  command.Option(
      "--heap", &options->heap, "NAME",
      "pprof: only this heap: driver, host, pytorch, ... (default: a framework's blocks, else "
      "driver)");
  command.Suggest("--heap", {"driver", "host", "pytorch", "nvtx"});
  options->window.AddTo(command, "start of the exported history", "end of it, and its moment");
  command.Option("--max-events", &options->max_events, "N",
                 "maximum number of events per GPU; 0: all (default 100000)");
  command.Choice("--keep", &options->keep, {"newest", "largest"},
                 "beyond --max-events keep the newest events, or the largest allocations");
  command.Option(
      "--max-mb", &options->max_mb, "N",
      "html: maximum size in MB; the smallest blocks are left out (default 5 to 20, by events)");
  options->strip.AddTo(command);
  command.Flag("--force", &options->force, "overwrite an existing FILE");
  options->frames.AddTo(command);
}

}  // namespace gmt::cli
