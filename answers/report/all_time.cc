#include "answers/report/all_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/text.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using Json = nlohmann::ordered_json;

std::string Place(int32_t device) {
  return device == analysis::kHostDevice ? "the host" : fmt::format("GPU {}", device);
}

std::string RowText(const analysis::AllTimeRow& row, size_t width) {
  const std::string text = row.frames.empty()
                               ? std::string(row.id == "others" ? "all others" : "without a stack")
                               : StackLines(row.frames, FramesShown::kFolded, width).front();
  return fmt::format("  {:>9} {:>7}  {}   {}\n", Bytes(row.bytes_at_peak), Count(row.count_at_peak),
                     text, row.id);
}

std::string HeapText(const analysis::AllTimeHeap& heap, size_t top, size_t width) {
  std::string text = fmt::format(
      "{} {}: peak {} at {}{}; {}, {}\n", Place(heap.device), heap.heap, Bytes(heap.peak_bytes),
      Duration(heap.peak_t_ns), heap.peak_is_before ? ", before then" : "",
      Plural(heap.allocations, "allocation"), Plural(heap.frees, "free"));
  for (size_t i = 0; i < std::min(top, heap.rows.size()); ++i) text += RowText(heap.rows[i], width);
  if (heap.rows.size() <= top) return text;
  uint64_t bytes = 0, count = 0;
  for (size_t i = top; i < heap.rows.size(); ++i) {
    bytes += heap.rows[i].bytes_at_peak;
    count += heap.rows[i].count_at_peak;
  }
  return text + fmt::format("  {:>9} {:>7}  {}\n", Bytes(bytes), Count(count),
                            Plural(heap.rows.size() - top, "other stack"));
}

}  // namespace

std::string AllTimeText(const std::optional<analysis::AllTime>& all, size_t top, size_t width) {
  if (!all) return "";
  std::string text =
      fmt::format("\nSince the start, including {} before {}\n",
                  Plural(all->events_before, "event"), Duration(all->details_from_t_ns));
  for (const analysis::AllTimeHeap& heap : all->heaps) text += HeapText(heap, top, width);
  return text;
}

Json AllTimeJson(const std::optional<analysis::AllTime>& all, size_t top) {
  if (!all) return nullptr;
  Json heaps = Json::array();
  for (const analysis::AllTimeHeap& heap : all->heaps) {
    Json rows = Json::array();
    for (size_t i = 0; i < std::min(top, heap.rows.size()); ++i) {
      const analysis::AllTimeRow& row = heap.rows[i];
      rows.push_back({{"id", row.id},
                      {"bytes_at_peak", row.bytes_at_peak},
                      {"count_at_peak", row.count_at_peak},
                      {"allocations_before", row.allocations},
                      {"allocated_bytes_before", row.allocated_bytes},
                      {"frames", FramesJson(row.frames)}});
    }
    heaps.push_back(
        {{"device", heap.device == analysis::kHostDevice ? Json(nullptr) : Json(heap.device)},
         {"heap", heap.heap},
         {"allocations", heap.allocations},
         {"frees", heap.frees},
         {"peak_bytes", heap.peak_bytes},
         {"peak_t_ns", heap.peak_t_ns},
         {"peak_is_before", heap.peak_is_before},
         {"peak_reserved_bytes",
          heap.peak_reserved_bytes ? Json(*heap.peak_reserved_bytes) : Json(nullptr)},
         {"rows", std::move(rows)},
         {"row_count", heap.rows.size()}});
  }
  return {{"details_from_t_ns", all->details_from_t_ns},
          {"events_before", all->events_before},
          {"heaps", std::move(heaps)}};
}

}  // namespace gmt::answers
