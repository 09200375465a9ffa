#include "answers/report/streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/text.h"
#include "symbols/demangle.h"

namespace gmt::answers {
namespace {

using analysis::CrossCheckResult;
using analysis::FrameText;
using analysis::HeldHeap;
using analysis::HeldRow;
using analysis::HostCost;
using analysis::HostCostRow;
using analysis::StreamMemory;
using analysis::StreamReport;
using analysis::Unmatched;

// Thresholds for showing a figure: share of the recording's time, and bytes.
constexpr double kWorthSaying = 0.01;
constexpr uint64_t kStrandedWorthSaying = 1 << 20;
constexpr size_t kNameWidth = 70;

std::string Nanoseconds(double ns) { return Duration(static_cast<int64_t>(ns)); }

// Returns "9.60 GiB ms": bytes times the time that they were held.
std::string ByteTime(double byte_ns) {
  const double byte_ms = byte_ns / 1e6;
  if (byte_ms < 1e18) return Bytes(static_cast<uint64_t>(byte_ms)) + " ms";
  return Bytes(static_cast<uint64_t>(byte_ms / 1e3)) + " s";
}

std::string Where(const std::vector<FrameText>& frames) {
  const int own = analysis::OwnFrame(frames);
  if (own < 0) return "no stack was recorded";
  const FrameText& frame = frames[static_cast<size_t>(own)];
  const std::string name =
      frame.is_python() ? frame.Name() : symbols::ShortName(frame.Name(), kNameWidth);
  const std::string place = frame.Place();
  return place.empty() ? name : fmt::format("{} ({})", name, place);
}

std::string StreamName(const StreamReport& report, uint64_t handle) {
  std::string text = fmt::format("stream {:#x}", handle);
  for (auto stream = report.streams.rbegin(); stream != report.streams.rend(); ++stream) {
    if (stream->info.handle != handle) continue;
    if (!stream->name.empty()) text += fmt::format(" \"{}\"", stream->name);
    break;
  }
  return text;
}

// Returns what pending work costs in memory.
std::string HeldLine(const HeldHeap& heap) {
  const analysis::Held& held = heap.held;
  if (held.frees == 0) {
    return fmt::format("GPU {}: it is unknown how long pending work held {} of {} ({})\n",
                       heap.device, Plural(heap.unknown_frees, "freed piece"), heap.heap,
                       Bytes(heap.unknown_bytes));
  }
  std::string text = fmt::format(
      "GPU {}: pending work held {} of {} ({}) for {} on average, {} at most; {}, up to {} at a "
      "time (at {})\n",
      heap.device, Plural(held.frees, "freed piece"), heap.heap, Bytes(held.bytes),
      Nanoseconds(held.mean_ns()), Nanoseconds(static_cast<double>(held.longest_ns)),
      ByteTime(held.byte_ns), Bytes(heap.peak_bytes), Duration(heap.peak_t_ns));
  if (heap.peak_occupied_bytes > heap.peak_live_bytes) {
    text += fmt::format("  without it the peak of {} would be {} instead of {}\n", heap.heap,
                        Bytes(heap.peak_live_bytes), Bytes(heap.peak_occupied_bytes));
  }
  if (held.still > 0) text += fmt::format("  {} until the end\n", Plural(held.still, "piece"));
  if (heap.unknown_frees > 0) {
    text += fmt::format("  for another {} ({}) the time is unknown\n",
                        Plural(heap.unknown_frees, "piece"), Bytes(heap.unknown_bytes));
  }
  return text;
}

std::string HeldRows(const StreamReport& report, size_t top) {
  std::string text;
  for (size_t i = 0; i < std::min(top, report.rows.size()); ++i) {
    const HeldRow& row = report.rows[i];
    text += fmt::format("  {:>12} {:>7} {:<7} {}", ByteTime(row.held.byte_ns),
                        Count(row.held.frees), row.heap, Where(row.frames));
    text += fmt::format("   stack/{}", row.stack);
    if (row.has_stream) text += ", " + StreamName(report, row.stream);
    text += "\n";
  }
  if (report.rows.size() > top) {
    text += fmt::format("  {}\n", Plural(report.rows.size() - top, "other stack"));
  }
  return text;
}

// Returns the free memory of each stream of a device except the stream with the most memory.
std::string StrandedLines(const StreamReport& report) {
  std::string text;
  std::vector<int32_t> devices;
  for (const StreamMemory& memory : report.memory) {
    if (devices.empty() || devices.back() != memory.device) {
      devices.push_back(memory.device);  // its first stream has the most memory
      continue;
    }
    if (memory.free() < kStrandedWorthSaying) continue;
    text += fmt::format("GPU {}: {} of {} reserved for {} is free but unusable by other streams\n",
                        memory.device, Bytes(memory.free()), Bytes(memory.reserved),
                        StreamName(report, memory.stream));
  }
  return text;
}

struct HostTime {
  uint64_t calls = 0, total_ns = 0, syncs = 0, sync_ns = 0;
};

HostTime TimeIn(const StreamReport& report, bool in_syncs) {
  HostTime time;
  for (const HostCostRow& row : report.host_costs) {
    if ((row.cost.kind == HostCost::kSync) != in_syncs) continue;
    time.calls += row.cost.calls;
    time.total_ns += row.cost.total_ns;
    time.syncs += row.cost.syncs;
    time.sync_ns += row.cost.sync_ns;
  }
  return time;
}

std::string HostRows(const StreamReport& report, bool in_syncs, size_t top) {
  std::string text;
  size_t shown = 0;
  for (const HostCostRow& row : report.host_costs) {
    if ((row.cost.kind == HostCost::kSync) != in_syncs || row.cost.total_ns == 0) continue;
    if (++shown > top) break;
    const bool has_stack = analysis::OwnFrame(row.frames) >= 0;
    text +=
        fmt::format("  {:>12} {:>7} {}{}\n", Nanoseconds(static_cast<double>(row.cost.total_ns)),
                    Count(row.cost.calls), row.api.empty() ? "call" : row.api,
                    has_stack ? " at " + Where(row.frames) : ", without stacks");
  }
  return text;
}

std::string HostLines(const StreamReport& report, size_t top) {
  const auto worth = static_cast<double>(report.duration_ns) * kWorthSaying;
  const HostTime syncs = TimeIn(report, true), calls = TimeIn(report, false);
  std::string text;
  if (syncs.total_ns > 0 && static_cast<double>(syncs.total_ns) >= worth) {
    text +=
        fmt::format("the host waited {} in {}\n", Nanoseconds(static_cast<double>(syncs.total_ns)),
                    Plural(syncs.calls, "synchronisation"));
    text += HostRows(report, true, top);
  }
  if (calls.total_ns > 0 && static_cast<double>(calls.total_ns) >= worth) {
    text +=
        fmt::format("the driver's allocation calls took {} ({})",
                    Nanoseconds(static_cast<double>(calls.total_ns)), Plural(calls.calls, "call"));
    if (calls.syncs > 0) {
      text +=
          fmt::format("; {} of it waiting for the device, {}",
                      Nanoseconds(static_cast<double>(calls.sync_ns)), Plural(calls.syncs, "time"));
    }
    text += "\n" + HostRows(report, false, top);
  }
  return text;
}

std::string CrossCheckLine(const CrossCheckResult& check) {
  if (!check.was_made) return "";
  return fmt::format("CUPTI saw the same {} and {}\n", Plural(check.allocations, "allocation"),
                     Plural(check.frees, "free"));
}

}  // namespace

std::string StreamText(const StreamReport& report, size_t top) {
  std::string text;
  for (const HeldHeap& heap : report.heaps) text += HeldLine(heap);
  text += HeldRows(report, top);
  text += StrandedLines(report);
  text += HostLines(report, top);
  text += CrossCheckLine(report.cross_check);
  return text.empty() ? "" : "\nStreams\n" + text;
}

std::vector<std::string> CrossCheckDoubts(const CrossCheckResult& check) {
  std::vector<std::string> doubts;
  const auto add = [&](uint64_t count, const std::string& text) {
    if (count > 0) doubts.push_back(text);
  };
  add(check.only_cupti, fmt::format("{} seen only by CUPTI: memory may be missing here",
                                    Plural(check.only_cupti, "allocation or free")));
  add(check.only_ours,
      fmt::format("{} not seen by CUPTI", Plural(check.only_ours, "recorded allocation or free")));
  add(check.sizes_differ,
      fmt::format("{} with a different size in CUPTI", Plural(check.sizes_differ, "allocation")));
  for (const Unmatched& what : check.first) {
    if (what.side != Unmatched::kOnlyCupti || doubts.size() > 5) continue;
    doubts.push_back(fmt::format("only CUPTI saw: {} of {} at {}, {}",
                                 what.is_free ? "free" : "allocation", Bytes(what.size.value_or(0)),
                                 Address(what.address), Duration(what.t_ns)));
  }
  return doubts;
}

}  // namespace gmt::answers
