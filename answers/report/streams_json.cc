#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "answers/json.h"
#include "answers/report/streams.h"

namespace gmt::answers {
namespace {

using analysis::Held;
using Json = nlohmann::ordered_json;

Json TimeOrNull(int64_t t_ns) {
  const bool known =
      t_ns != std::numeric_limits<int64_t>::min() && t_ns != std::numeric_limits<int64_t>::max();
  return known ? Json(t_ns) : Json(nullptr);
}

void AddHeld(const Held& held, Json& json) {
  json["frees"] = held.frees;
  json["bytes"] = held.bytes;
  json["byte_seconds"] = held.byte_ns / 1e9;
  json["mean_ns"] = held.mean_ns();
  json["longest_ns"] = held.longest_ns;
  json["to_the_end"] = held.still;
}

Json HeldHeapJson(const analysis::HeldHeap& heap) {
  Json json = {{"device", heap.device}, {"heap", heap.heap}};
  AddHeld(heap.held, json);
  json["unknown_frees"] = heap.unknown_frees;
  json["unknown_bytes"] = heap.unknown_bytes;
  json["peak_bytes"] = heap.peak_bytes;
  json["peak_t_ns"] = heap.peak_t_ns;
  json["peak_live_bytes"] = heap.peak_live_bytes;
  json["peak_occupied_bytes"] = heap.peak_occupied_bytes;
  return json;
}

Json HeldRowJson(const analysis::HeldRow& row) {
  Json json = {{"id", "stack/" + std::to_string(row.stack)},
               {"device", row.device},
               {"heap", row.heap},
               {"stream", row.has_stream ? Json(row.stream) : Json(nullptr)}};
  AddHeld(row.held, json);
  return json;
}

Json StreamJson(const analysis::StreamRow& row) {
  const analysis::StreamInfo& info = row.info;
  return {{"stream", info.handle},
          {"name", row.name.empty() ? Json(nullptr) : Json(row.name)},
          {"priority", OrNull(info.priority)},
          {"blocking", OrNull(info.blocking)},
          {"created_t_ns", TimeOrNull(info.created_ns)},
          {"destroyed_t_ns", TimeOrNull(info.destroyed_ns)},
          {"event_records", info.records},
          {"event_waits", info.waits},
          {"graph_launches", info.launches},
          {"copies", info.copies},
          {"copied_bytes", info.copied_bytes},
          {"copy_ns", info.copy_ns},
          {"syncs", info.syncs},
          {"sync_ns", info.sync_ns}};
}

Json MemoryJson(const analysis::StreamMemory& memory) {
  return {{"device", memory.device},
          {"stream", memory.stream},
          {"segments", memory.segments},
          {"reserved_bytes", memory.reserved},
          {"allocated_bytes", memory.allocated},
          {"pending_bytes", memory.pending},
          {"free_bytes", memory.free()}};
}

const char* NameOf(analysis::HostCost::Kind kind) {
  switch (kind) {
    case analysis::HostCost::kSync:
      return "sync";
    case analysis::HostCost::kAllocation:
      return "allocation";
    case analysis::HostCost::kFree:
      return "free";
  }
  return "";
}

Json CostJson(const analysis::HostCostRow& row) {
  return {{"what", NameOf(row.cost.kind)}, {"api", row.api},
          {"stack", row.cost.stack},       {"calls", row.cost.calls},
          {"total_ns", row.cost.total_ns}, {"longest_ns", row.cost.longest_ns},
          {"inner_syncs", row.cost.syncs}, {"inner_sync_ns", row.cost.sync_ns}};
}

template <typename List, typename ToJson>
Json ListJson(const List& list, ToJson to_json) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(to_json(item));
  return json;
}

Json UnmatchedJson(const analysis::Unmatched& what) {
  return {{"seen_by", what.side == analysis::Unmatched::kOnlyCupti ? "cupti" : "recording"},
          {"what", what.is_free ? "free" : "alloc"},
          {"address", what.address},
          {"size", OrNull(what.size)},
          {"t_ns", what.t_ns},
          {"device", OrNull(what.device)},
          {"stack", what.stack}};
}

}  // namespace

Json StreamsJson(const analysis::StreamReport& report) {
  return {{"held", ListJson(report.heaps, HeldHeapJson)},
          {"held_rows", ListJson(report.rows, HeldRowJson)},
          {"streams", ListJson(report.streams, StreamJson)},
          {"memory", ListJson(report.memory, MemoryJson)},
          {"host", ListJson(report.host_costs, CostJson)}};
}

Json CrossCheckJson(const analysis::CrossCheckResult& check) {
  if (!check.was_made) return nullptr;
  return {{"allocations", check.allocations},
          {"frees", check.frees},
          {"only_cupti", check.only_cupti},
          {"only_recording", check.only_ours},
          {"sizes_differ", check.sizes_differ},
          {"pool_events", check.pool_events},
          {"not_comparable", check.not_comparable},
          {"not_recorded", check.not_recorded},
          {"not_covered", check.not_covered},
          {"while_off", check.while_off},
          {"behind_the_last", check.behind_the_last},
          {"given_up", check.given_up},
          {"first", ListJson(check.first, UnmatchedJson)}};
}

}  // namespace gmt::answers
