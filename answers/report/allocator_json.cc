#include <nlohmann/json.hpp>

#include "answers/json.h"
#include "answers/report/allocator.h"

namespace gmt::answers {
namespace {

using Json = nlohmann::ordered_json;

Json PhasesJson(const std::array<analysis::PhaseUse, analysis::kPhases>& phases) {
  Json json = Json::object();
  for (size_t i = 0; i < phases.size(); ++i) {
    if (!phases[i].present) continue;
    json[NameOf(static_cast<analysis::Phase>(i))] = {{"peak_bytes", phases[i].peak},
                                                     {"change_bytes", phases[i].change},
                                                     {"times", phases[i].times}};
  }
  return json;
}

Json PoolJson(const analysis::PoolState& pool) {
  return {{"pool", NameOf(pool.kind)},
          {"segments", pool.segments},
          {"blocks", pool.blocks},
          {"reserved_bytes", pool.reserved},
          {"allocated_bytes", pool.allocated},
          {"pending_bytes", pool.pending},
          {"releasable_bytes", pool.releasable},
          {"pinned_bytes", pool.pinned}};
}

Json StepsJson(const analysis::Cycles& cycles, const analysis::DeviceCycles& device) {
  const analysis::TypicalCycle typical = analysis::TypicalOf(device);
  Json json = {{"source", cycles.source},
               {"inferred", cycles.inferred},
               {"count", device.cycles.size()},
               {"typical",
                {{"peak_bytes", typical.peak},
                 {"peak_phase", NameOf(typical.peak_phase)},
                 {"steps", typical.steps},
                 {"steps_with_peak_phase", typical.steps_with_peak_phase},
                 {"growth_bytes", typical.growth},
                 {"phases", PhasesJson(typical.phases)}}},
               {"steps", Json::array()}};
  for (size_t i = 0; i < device.cycles.size(); ++i) {
    const analysis::Cycle& cycle = cycles.cycles[i];
    const analysis::CycleUse& use = device.cycles[i];
    json["steps"].push_back({{"begin_t_ns", cycle.begin_t_ns},
                             {"end_t_ns", cycle.end_t_ns},
                             {"live_begin_bytes", use.live_begin},
                             {"live_end_bytes", use.live_end},
                             {"peak_bytes", use.peak},
                             {"peak_phase", NameOf(use.peak_phase)},
                             {"phases", PhasesJson(use.phases)}});
  }
  return json;
}

Json DriverCallsJson(const analysis::StepDriverCalls& calls) {
  return {{"steps", calls.steps},
          {"calls", calls.calls},
          {"later_calls", calls.later_calls},
          {"later_duration_ns", calls.later_duration_ns},
          {"later_steps_with_calls", calls.later_steps_with_calls},
          {"last_step", calls.last_step == 0 ? Json(nullptr) : Json(calls.last_step)},
          {"steady", calls.IsSteady()}};
}

Json CheckJson(const analysis::TotalCheck& check) {
  const auto difference = [&](const analysis::TotalCheck::Difference& at) {
    if (check.different == 0) return Json(nullptr);
    return Json{{"t_ns", at.t_ns}, {"recorded_bytes", at.ours}, {"reported_bytes", at.theirs}};
  };
  return {{"events", check.compared},
          {"different", check.different},
          {"first", difference(check.first)},
          {"largest", difference(check.largest)}};
}

}  // namespace

Json AllocatorsJson(const std::vector<analysis::AllocatorUse>& allocators, int32_t device) {
  Json json = Json::array();
  for (const analysis::AllocatorUse& use : allocators) {
    if (use.device != device) continue;
    json.push_back({{"name", use.name},
                    {"live_bytes", use.live_bytes},
                    {"live_count", use.live_count},
                    {"peak_bytes", use.peak_bytes},
                    {"peak_t_ns", use.peak_t_ns}});
  }
  return json;
}

Json RoomJson(const std::vector<analysis::Room>& rooms, int32_t device) {
  for (const analysis::Room& room : rooms) {
    if (room.device != device) continue;
    return {{"total_bytes", OrNull(room.total_bytes)},
            {"free_bytes", OrNull(room.free_bytes)},
            {"largest_cached_bytes", room.largest_cached_bytes},
            {"releasable_bytes", room.releasable_bytes},
            {"largest_request_bytes", room.largest_request()}};
  }
  return nullptr;
}

void AddAllocatorKeys(const analysis::AllocatorReport& report, int32_t device, Json& json) {
  json["pools"] = Json::array();
  for (const analysis::DeviceAllocator& allocator : report.devices) {
    if (allocator.device != device) continue;
    for (const analysis::PoolState& pool : allocator.pools) json["pools"].push_back(PoolJson(pool));
  }
  json["steps"] = nullptr;
  for (const analysis::DeviceCycles& cycles : report.cycles.devices) {
    if (cycles.device == device) json["steps"] = StepsJson(report.cycles, cycles);
  }
  json["driver_calls"] = nullptr;
  for (const analysis::StepDriverCalls& calls : report.driver_calls) {
    if (calls.device == device) json["driver_calls"] = DriverCallsJson(calls);
  }
}

Json ActionsJson(const analysis::AllocatorReport& report) {
  Json json = Json::array();
  for (const analysis::DeviceAllocator& allocator : report.devices) {
    for (const analysis::AllocatorAction& action : allocator.actions) {
      json.push_back({{"action", NameOf(action.kind)},
                      {"device", action.device},
                      {"t_ns", action.t_ns},
                      {"duration_ns", action.duration_ns},
                      {"requested_bytes", action.requested_bytes},
                      {"released_bytes", action.released_bytes},
                      {"releases", action.releases},
                      {"succeeded", action.succeeded},
                      {"under_limit", action.under_limit},
                      {"thread", action.thread},
                      {"stack", action.stack}});
    }
  }
  return json;
}

Json ReconciliationJson(const analysis::AllocatorReport& report) {
  Json json = Json::array();
  for (const analysis::Reconciliation& found : report.reconciliations) {
    json.push_back({{"heap", found.heap},
                    {"device", found.device},
                    {"allocated", CheckJson(found.allocated)},
                    {"reserved", CheckJson(found.reserved)}});
  }
  return json;
}

}  // namespace gmt::answers
