#include "answers/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/text.h"
#include "answers/report/all_time.h"
#include "answers/report/allocator.h"
#include "answers/report/categories.h"
#include "answers/report/device_use.h"
#include "answers/report/steps.h"
#include "answers/report/streams.h"
#include "answers/report/tensors.h"
#include "answers/stacks/stack_text.h"
#include "symbols/demangle.h"

namespace gmt::answers {
namespace {

using analysis::GroupBy;
using analysis::Report;
using analysis::ReportDevice;
using analysis::ReportHeap;
using analysis::ReportRow;

constexpr size_t kRowsInFirstLine = 3;
constexpr size_t kStreamRows = 3;
constexpr size_t kAllTimeRows = 5;
constexpr size_t kRowTextColumn = 34;                 // column at which the text of a row begins
constexpr std::string_view kProgram = "the program";  // analysis::LibraryOf

std::string Place(const ReportDevice& device) {
  return device.index == analysis::kHostDevice ? "the host" : fmt::format("GPU {}", device.index);
}

std::string_view GroupNoun(GroupBy by) {
  switch (by) {
    case GroupBy::kStack:
      return "stack";
    case GroupBy::kFunction:
      return "function";
    case GroupBy::kFile:
      return "file";
    case GroupBy::kHeap:
      return "heap";
    case GroupBy::kThread:
      return "thread";
    case GroupBy::kStream:
      return "stream";
    case GroupBy::kSize:
      return "size";
    case GroupBy::kLibrary:
      return "library";
    case GroupBy::kCategory:
      return "category";
    case GroupBy::kLayer:
      return "layer";
    case GroupBy::kDtype:
      return "dtype";
    case GroupBy::kNode:
    case GroupBy::kLayerNode:
      return "node";
  }
  return "row";
}

// Returns " at 4.20 s"; "" at time 0, when the recording began: snapshots may have no other time.
std::string AtTime(int64_t t_ns) { return t_ns == 0 ? "" : fmt::format(" at {}", Duration(t_ns)); }

std::string Moment(const ReportDevice& device) {
  if (device.at.name == "peak") return AtTime(device.at.t_ns);
  return device.at.t_ns == 0 ? fmt::format(" at {}", device.at.name)
                             : fmt::format(" at {} ({})", device.at.name, Duration(device.at.t_ns));
}

// Returns whether it is not known how the memory changed: it was all held before the recording, and
// nothing was allocated since. (A window of a longer recording begins later.)
bool IsOneState(const ReportDevice& device) {
  return device.at.t_ns == 0 &&
         std::all_of(device.heaps.begin(), device.heaps.end(),
                     [](const ReportHeap& heap) { return heap.allocations == 0; });
}

std::vector<const ReportRow*> RowsOf(const Report& report, const ReportDevice& device) {
  std::vector<const ReportRow*> rows;
  for (const ReportRow& row : report.rows) {
    if (row.device == device.index) rows.push_back(&row);
  }
  return rows;
}

// Returns whether the code of the row, or what it is grouped by, is known, and the memory is not
// cached.
bool Explains(const Report& report, const ReportRow& row) {
  if (row.unknown) return false;
  if (report.by == GroupBy::kStack && !row.before && row.frames.empty() &&
      row.forward_frames.empty()) {
    return false;
  }
  return row.categories.empty() || row.categories.front().category != analysis::Category::kCache;
}

// Returns ", 91 % from 3 stacks": the share of allocated memory in the first rows. "" if no row
// explains anything.
std::string FromRows(const Report& report, const ReportDevice& device) {
  uint64_t bytes = 0;
  size_t count = 0;
  for (const ReportRow* row : RowsOf(report, device)) {
    if (count == kRowsInFirstLine || !Explains(report, *row)) continue;
    bytes += row->bytes;
    ++count;
  }
  if (count == 0 || device.allocated_bytes == 0) return "";
  return fmt::format(", {} from {}",
                     Percent(static_cast<double>(std::min(bytes, device.allocated_bytes)),
                             static_cast<double>(device.allocated_bytes)),
                     Plural(count, std::string(GroupNoun(report.by)).c_str()));
}

// Returns "; up to 4.10 GiB taken from the driver", the peak of all held memory, if it exceeds what
// is allocated.
std::string DriverMemoryText(const ReportDevice& device) {
  if (device.at.name != "peak" || IsOneState(device)) {
    return device.bytes == device.allocated_bytes
               ? ""
               : fmt::format("; {} taken from the driver", Bytes(device.bytes));
  }
  if (device.peak_bytes == device.peak_allocated_bytes) return "";
  return fmt::format("; up to {} taken from the driver", Bytes(device.peak_bytes));
}

std::string Verdict(const Report& report, const ReportDevice& device) {
  if (device.peak_bytes == 0) return fmt::format("no memory was held on {}", Place(device));
  const std::string taken = DriverMemoryText(device);
  const bool lacks_peak = device.at.name == "peak" && IsOneState(device);
  const bool is_peak = device.at.name == "peak" && !lacks_peak;
  return fmt::format("{} {}{} on {}{}{}{}{}", is_peak ? "peak" : "live",
                     Bytes(device.allocated_bytes), taken.empty() ? "" : " allocated",
                     Place(device), Moment(device), FromRows(report, device), taken,
                     lacks_peak ? "; earlier use is not known" : "");
}

// ---- Rows ---------------------------------------------------------------------------------------

// Memory of a backward pass is shown by its line in the forward pass, followed by what the backward
// pass called.
std::vector<std::string> RowLines(const ReportRow& row, FramesShown shown, size_t width) {
  if (shown == FramesShown::kRaw || row.forward_frames.empty()) {
    std::vector<std::string> lines = StackLines(row.frames, shown, width);
    if (row.recomputed) lines.front().insert(0, kRecomputed);
    if (row.forward_frames.empty()) return lines;
    lines.push_back("backward of");
    for (std::string& line : StackLines(row.forward_frames, FramesShown::kRaw, width))
      lines.push_back(std::move(line));
    return lines;
  }
  const std::string_view of = BackwardOf(row.recomputed);
  std::vector<std::string> lines =
      StackLines(row.forward_frames, FramesShown::kFolded, width - std::min(width, of.size()));
  lines.front().insert(0, of);
  if (row.frames.empty()) return lines;
  const auto callers = std::find_if(lines.begin() + 1, lines.end(), [](const std::string& line) {
    return !line.starts_with("  > ");
  });
  lines.insert(callers, "  in " + StackLine(row.frames, width - 5));
  return lines;
}

std::string Numbers(uint64_t bytes, uint64_t whole, uint64_t count, std::string_view heap) {
  return fmt::format("{:>9} {:>6} {:>7}  {:<7} ", Bytes(bytes),
                     Percent(static_cast<double>(bytes), static_cast<double>(whole)), Count(count),
                     heap);
}

std::string RowText(const ReportRow& row, const ReportDevice& device, GroupBy by, FramesShown shown,
                    size_t width) {
  std::string text = Numbers(row.bytes, device.bytes, row.count, row.heap);
  if (row.before) return text + row.label + "   " + row.id + "\n";
  if (by != GroupBy::kStack) {
    const bool has_layers = by == GroupBy::kLayer || by == GroupBy::kLayerNode;
    text += row.label.empty() ? "unknown"
            : has_layers      ? LayerText(row.label, width)
                              : symbols::ShortName(row.label, width);
    if (by == GroupBy::kCategory && !row.categories.empty()) {
      text += "\n" + std::string(kRowTextColumn, ' ') + ReasonText(row.categories.front(), width);
    }
    return text + "\n";
  }
  const std::vector<std::string> lines = RowLines(row, shown, width);
  text += lines.front() + "   " + row.id;
  if (!row.label.empty()) text += ", region \"" + row.label + "\"";
  if (!row.library.empty() && row.library != kProgram) text += ", " + row.library;
  text += "\n";
  for (size_t i = 1; i < lines.size(); ++i)
    text += std::string(kRowTextColumn, ' ') + lines[i] + "\n";
  return text;
}

std::string Table(const Report& report, const ReportDevice& device, size_t top, FramesShown shown,
                  size_t width) {
  const std::vector<const ReportRow*> rows = RowsOf(report, device);
  if (rows.empty()) return "";
  std::string text = fmt::format("{:>9} {:>6} {:>7}  {:<7} {}\n", "bytes", "share", "count", "heap",
                                 GroupNoun(report.by));
  uint64_t other_bytes = 0, other_count = 0, total_count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    total_count += rows[i]->count;
    if (i < top) {
      text += RowText(*rows[i], device, report.by, shown, width);
    } else {
      other_bytes += rows[i]->bytes;
      other_count += rows[i]->count;
    }
  }
  if (rows.size() > top) {
    const std::string others =
        Plural(rows.size() - top, fmt::format("other {}", GroupNoun(report.by)).c_str());
    text += Numbers(other_bytes, device.bytes, other_count, "") + others + "\n";
  }
  return text + Numbers(device.bytes, device.bytes, total_count, "") + "total\n";
}

// ---- Heaps --------------------------------------------------------------------------------------

std::string HeapText(const ReportHeap& heap) {
  std::string text = fmt::format("{}: live {}, peak {}{}", heap.heap, Bytes(heap.live_bytes),
                                 Bytes(heap.peak_live_bytes), AtTime(heap.peak_live_t_ns));
  if (heap.reserved_bytes) {
    text += fmt::format("; reserved {}, peak {}{}", Bytes(*heap.reserved_bytes),
                        Bytes(*heap.peak_reserved_bytes), AtTime(heap.peak_reserved_t_ns));
  }
  if (heap.pending_bytes > 0) {
    text += fmt::format("; {} freed, awaiting a stream", Bytes(heap.pending_bytes));
  }
  text +=
      fmt::format("; {}, {}", Plural(heap.allocations, "allocation"), Plural(heap.frees, "free"));
  if (heap.before) {
    text += fmt::format("; {} held before attach, {} of it freed since", Bytes(heap.before->bytes),
                        Bytes(heap.before->freed_bytes));
    if (heap.before->unknown_freed_bytes > 0) {
      text += fmt::format(", plus {} that were not known at attach",
                          Bytes(heap.before->unknown_freed_bytes));
    }
  }
  return text + "\n";
}

std::string DeviceText(const ReportDevice& device) {
  std::string text = Place(device);
  if (!device.name.empty()) text += " " + device.name;
  if (device.total_bytes) text += fmt::format(", {} of memory", Bytes(*device.total_bytes));
  return text + "\n";
}

const ReportDevice& Biggest(const Report& report) {
  return *std::max_element(
      report.devices.begin(), report.devices.end(),
      [](const ReportDevice& a, const ReportDevice& b) { return a.bytes < b.bytes; });
}

std::string MayAwaitText(const ReportDevice& device) {
  std::string text;
  for (const ReportHeap& heap : device.heaps) {
    if (heap.may_await_bytes == 0) continue;
    text += fmt::format("  {}: whether frees of {} had to wait for a stream\n", Place(device),
                        Bytes(heap.may_await_bytes));
  }
  return text;
}

std::string Unknown(const Report& report, const std::vector<std::string>& lacks) {
  std::string text;
  if (report.unknown_bytes > 0) {
    text += fmt::format("  {} without a stack\n", Bytes(report.unknown_bytes));
  }
  for (const ReportDevice& device : report.devices) text += MayAwaitText(device);
  for (const std::string& lack : Mismatches(report.allocator.reconciliations)) {
    text += "  " + lack + "\n";
  }
  for (const std::string& doubt : CrossCheckDoubts(report.streams.cross_check)) {
    text += "  " + doubt + "\n";
  }
  for (const std::string& lack : lacks) text += "  " + lack + "\n";
  return text.empty() ? "" : "\nNot known\n" + text;
}

}  // namespace

std::string ReportText(const Report& report, const std::vector<std::string>& lacks, size_t top,
                       FramesShown shown, const Terminal& terminal) {
  if (report.devices.empty()) {
    return "no memory was held: the recording has no allocations\n" + Unknown(report, lacks);
  }
  const size_t columns = static_cast<size_t>(std::max(terminal.width, 0));
  const size_t width =
      columns > kRowTextColumn + kMinTextWidth ? columns - kRowTextColumn : kMinTextWidth;
  const ReportDevice& biggest = Biggest(report);
  std::string text = terminal.Bold(Verdict(report, biggest)) + "\n";
  for (const ReportDevice& device : report.devices) {
    text += "\n" + DeviceText(device);
    if (&device != &biggest) text += Verdict(report, device) + "\n";
    text += Table(report, device, top, shown, width);
    if (report.by != GroupBy::kCategory) {
      text += CategoriesText(device.categories, device.bytes, columns);
    }
    for (const ReportHeap& heap : device.heaps) text += HeapText(heap);
    text += AllocatorsText(report.allocators, device.index);
    text += RoomText(report.rooms, device.index);
    text += AllocatorText(report.allocator, device.index);
    text += StepProfileText(report.profiles, device.index);
    text += TensorFactsText(report.tensors, device.index);
    text += DeviceUseText(report.uses, device.index);
  }
  text += AllTimeText(report.all_time, std::min(top, kAllTimeRows), width);
  return text + StreamText(report.streams, std::min(top, kStreamRows)) + Unknown(report, lacks);
}

}  // namespace gmt::answers
