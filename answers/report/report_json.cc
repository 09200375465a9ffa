#include <algorithm>
#include <nlohmann/json.hpp>

#include "answers/json.h"
#include "answers/report/all_time.h"
#include "answers/report/allocator.h"
#include "answers/report/categories.h"
#include "answers/report/device_use.h"
#include "answers/report/report_text.h"
#include "answers/report/run.h"
#include "answers/report/steps.h"
#include "answers/report/streams.h"
#include "answers/report/tensors.h"
#include "answers/stacks/alive_text.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using Json = nlohmann::ordered_json;

Json Index(int32_t device) {
  return device == analysis::kHostDevice ? Json(nullptr) : Json(device);
}

Json HeldBeforeJson(const std::optional<analysis::HeldBefore>& before) {
  if (!before) return nullptr;
  return {{"bytes", before->bytes},
          {"blocks", before->blocks},
          {"freed_bytes", before->freed_bytes},
          {"freed_blocks", before->freed_blocks},
          {"unknown_freed_bytes", before->unknown_freed_bytes},
          {"unknown_freed_blocks", before->unknown_freed_blocks}};
}

Json HeapJson(const analysis::ReportHeap& heap) {
  return {
      {"heap", heap.heap},
      {"live_bytes", heap.live_bytes},
      {"peak_live_bytes", heap.peak_live_bytes},
      {"peak_live_t_ns", heap.peak_live_t_ns},
      {"reserved_bytes", OrNull(heap.reserved_bytes)},
      {"peak_reserved_bytes", OrNull(heap.peak_reserved_bytes)},
      {"peak_reserved_t_ns", heap.reserved_bytes ? Json(heap.peak_reserved_t_ns) : Json(nullptr)},
      {"allocations", heap.allocations},
      {"frees", heap.frees},
      {"pending_bytes", heap.pending_bytes},
      {"may_await_bytes", heap.may_await_bytes},
      {"rounding_bytes", OrNull(heap.rounding_bytes)},
      {"before", HeldBeforeJson(heap.before)}};
}

Json DeviceReportJson(const analysis::ReportDevice& device) {
  Json json = {{"index", Index(device.index)},
               {"name", OrNull(device.name)},
               {"total_bytes", OrNull(device.total_bytes)},
               {"at", device.at.name},
               {"t_ns", device.at.t_ns},
               {"bytes", device.bytes},
               {"allocated_bytes", device.allocated_bytes},
               {"peak_bytes", device.peak_bytes},
               {"peak_t_ns", device.peak_t_ns},
               {"peak_allocated_bytes", device.peak_allocated_bytes},
               {"peak_allocated_t_ns", device.peak_allocated_t_ns},
               {"heaps", Json::array()}};
  for (const analysis::ReportHeap& heap : device.heaps) json["heaps"].push_back(HeapJson(heap));
  json["categories"] = CategoriesJson(device.categories);
  return json;
}

Json BeforeJson(const std::optional<analysis::BeforeGroup>& before) {
  if (!before) return nullptr;
  return {{"match", NameOf(before->match)},
          {"guess", before->is_guess()},
          {"suspect", OrNull(before->suspect)}};
}

Json RowJson(const analysis::ReportRow& row, analysis::GroupBy by) {
  Json json = {{"id", row.id},
               {"device", Index(row.device)},
               {"heap", row.heap},
               {"bytes", row.bytes},
               {"count", row.count}};
  AddCategoryKeys(row.categories, json);
  if (!row.label.empty()) {
    json["label"] = row.label;
  } else if (by == analysis::GroupBy::kStack && !row.before) {
    json["label"] = LabelOf(row.frames, row.forward_frames, row.recomputed);
  }
  json["alive"] = AliveJson(row.alive);
  json["library"] = OrNull(row.library);
  json["before"] = BeforeJson(row.before);
  json["recomputed"] = row.recomputed;
  json["frames"] = FramesJson(row.frames);
  json["forward_frames"] =
      row.forward_frames.empty() ? Json(nullptr) : FramesJson(row.forward_frames);
  return json;
}

}  // namespace

std::string ReportJson(const analysis::Report& report, const ReportSource& source, size_t top) {
  Json json = {
      {"schema", "gpumemtrace.report/1"},
      {"file", source.file},
      {"run", source.run == nullptr ? Json(nullptr) : RunJson(*source.run, source.complete)},
      {"devices", Json::array()},
      {"rows", Json::array()},
      {"other_rows", Json::object()},
      {"unknown_bytes", report.unknown_bytes},
      {"actions", ActionsJson(report.allocator)},
      {"reconciliation", ReconciliationJson(report.allocator)},
      {"streams", StreamsJson(report.streams)},
      {"cross_check", CrossCheckJson(report.streams.cross_check)},
      {"all_time", AllTimeJson(report.all_time, top)},
      {"lacks", source.lacks}};
  for (const analysis::ReportDevice& device : report.devices) {
    json["devices"].push_back(DeviceReportJson(device));
    AddAllocatorKeys(report.allocator, device.index, json["devices"].back());
    json["devices"].back()["allocators"] = AllocatorsJson(report.allocators, device.index);
    json["devices"].back()["room"] = RoomJson(report.rooms, device.index);
    json["devices"].back()["step_profile"] = StepProfileJson(report.profiles, device.index);
    json["devices"].back()["tensors"] = TensorFactsJson(report.tensors, device.index);
    json["devices"].back()["device_use"] = DeviceUseJson(report.uses, device.index);
  }
  uint64_t bytes = 0, count = 0;
  const size_t shown = std::min(top, report.rows.size());
  for (size_t i = 0; i < report.rows.size(); ++i) {
    if (i < shown) {
      json["rows"].push_back(RowJson(report.rows[i], report.by));
    } else {
      bytes += report.rows[i].bytes;
      count += report.rows[i].count;
    }
  }
  json["other_rows"] = {{"rows", report.rows.size() - shown}, {"bytes", bytes}, {"count", count}};
  // A path or a symbol need not be valid UTF-8.
  return JsonText(json, -1);
}

}  // namespace gmt::answers
