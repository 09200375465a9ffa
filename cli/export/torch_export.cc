// The format of PyTorch's memory snapshots.

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/stacks/frames.h"
#include "analysis/text.h"
#include "cli/command.h"
#include "cli/export/export_file.h"
#include "cli/export/formats.h"
#include "cli/open_recording.h"
#include "interop/torch/torch_snapshot.h"

namespace gmt::cli {
namespace {

using interop::TorchSelection;

// The PyTorch viewer holds several copies of the file in memory.
constexpr uint64_t kHeavyFile = 256 << 20;

absl::StatusOr<TorchSelection> Selection(const ExportArguments& arguments) {
  TorchSelection selection;
  auto window = arguments.window.Window();
  if (!window.ok()) return window.status();
  if (!arguments.max_events.empty() &&
      !absl::SimpleAtoi(arguments.max_events, &selection.max_events)) {
    return UsageError("--max-events: expected a number; 0 for all");
  }
  selection.window = *window;
  if (arguments.keep == "largest") selection.keep = TorchSelection::Keep::kLargest;
  selection.device = arguments.device;
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
    PrintNote(fmt::format("{} without an address (CUDA arrays, imported memory) shown from 2^52 on",
                          Plural(counts.moved, "allocation")));
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

absl::Status CheckDevice(const ExportArguments& arguments, const analysis::Trace& trace) {
  if (!arguments.device) return absl::OkStatus();
  std::set<int32_t> known;
  for (int32_t device : trace.rows.device) known.insert(device);
  for (const auto& failed : trace.failed) known.insert(failed.device);
  known.erase(analysis::kHostDevice);
  if (known.contains(*arguments.device)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      arguments.file(), ": nothing was allocated on GPU ", *arguments.device,
      known.empty() ? "" : absl::StrCat("; GPUs with allocations: ", absl::StrJoin(known, ", "))));
}

}  // namespace

absl::StatusOr<int> ExportTorch(const ExportArguments& arguments) {
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto selection = Selection(arguments);
  if (!selection.ok()) return selection.status();
  auto file = ExportFile::Create(arguments);
  if (!file.ok()) return file.status();
  const auto loaded = OpenRecording(arguments.file(), {.text = answers::TextForm::kAsRecorded});
  if (!loaded.ok()) return loaded.status();
  const answers::Recording& recording = **loaded;
  if (absl::Status status = CheckDevice(arguments, recording.trace()); !status.ok()) return status;
  // An imported snapshot is exported as a whole unless a limit is given.
  const bool is_snapshot = interop::IsImportedSnapshot(recording.trace());
  if (is_snapshot && arguments.max_events.empty()) selection->max_events = 0;
  const interop::StackFrames frames = [&](uint32_t stack) {
    if (is_snapshot) return interop::StatedFrames(recording.definitions(), stack);
    auto all = analysis::DescribeStack(recording.definitions(), stack, *rules);
    return arguments.frames.raw ? all : analysis::WithoutNoise(std::move(all));
  };
  const interop::TorchSnapshotSummary summary = interop::WriteTorchSnapshot(
      recording.trace(), recording.definitions(), frames, *selection, file->stream());
  const uint64_t size = file->size();
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: {}, {} with {}", arguments.output, Plural(summary.events, "event"),
                        Plural(summary.segments, "segment"), Plural(summary.blocks, "block")));
  for (const interop::TorchDeviceSummary& device : summary.devices) PrintWhatIsLeftOut(device);
  if (size > kHeavyFile) {
    PrintNote(
        fmt::format("{} is a lot for memory_viz: it may lag or crash the browser", Bytes(size)));
  }
  PrintWhatCannotBeRepresented(summary);
  return kDone;
}

}  // namespace gmt::cli
