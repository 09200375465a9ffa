#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/leaks/trend.h"
#include "answers/json.h"
#include "answers/leaks/leaks_text.h"
#include "answers/stacks/alive_text.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::LeakReport;
using analysis::LeakSuspect;
using analysis::Whole;
using Json = nlohmann::ordered_json;

Json DeviceOrNull(int32_t device) {
  return device == analysis::kHostDevice ? Json() : Json(device);
}

Json FrameOrNull(const std::optional<analysis::FrameText>& frame) {
  return frame ? FrameJson(*frame) : Json();
}

// The slope may be negative.
Json SlopeJson(double bytes) {
  return bytes < 0 ? Json(-static_cast<int64_t>(Whole(-bytes))) : Json(Whole(bytes));
}

Json StackJson(const analysis::LeakStack& stack, analysis::StackTexts& stacks) {
  const auto& frames = stacks.Frames(stack.stack);
  const auto& forward_frames = stacks.Frames(stack.forward_stack);
  Json json = {{"id", stack.id},
               {"bytes", stack.bytes},
               {"count", stack.count},
               {"bytes_per_cycle", SlopeJson(stack.bytes_per_cycle)},
               {"label", LabelOf(frames, forward_frames, /*recomputed=*/false)},
               {"frames", FramesJson(frames)}};
  if (stack.forward_stack != 0) json["forward_frames"] = FramesJson(forward_frames);
  return json;
}

Json SuspectJson(const LeakSuspect& suspect, analysis::StackTexts& stacks,
                 analysis::SourceLines& sources) {
  Json json = {
      {"id", suspect.id},
      {"tier", NameOf(suspect.tier)},
      {"kind", NameOf(suspect.kind)},
      {"what", WhatIsKept(suspect)},
      {"device", DeviceOrNull(suspect.device)},
      {"heap", suspect.heap.empty() ? Json() : Json(suspect.heap)},
      {"library", suspect.library.empty() ? Json() : Json(suspect.library)},
      {"bytes_per_cycle", SlopeJson(suspect.bytes_per_cycle)},
      {"low_bytes_per_cycle", SlopeJson(suspect.low_bytes_per_cycle)},
      {"high_bytes_per_cycle", SlopeJson(suspect.high_bytes_per_cycle)},
      {"bytes", suspect.bytes},
      {"count", suspect.count},
      {"since_cycle", suspect.since_cycle},
      {"reason", suspect.reason},
      {"alive", AliveJson({suspect.alive})},
      {"lock_step_with", suspect.lock_step_with.empty() ? Json() : Json(suspect.lock_step_with)},
      {"fix", OrNull(FixOf(suspect))},
      {"common_frame", FrameOrNull(suspect.common_frame)},
      {"source", OrNull(suspect.common_frame ? sources.Line(*suspect.common_frame) : "")},
      {"layer", suspect.layer.empty() ? Json() : Json(suspect.layer)},
      {"option", suspect.option.empty() ? Json() : Json(suspect.option)},
      {"eta_ns", OrNull(suspect.eta_ns)},
      {"low_eta_ns", OrNull(suspect.low_eta_ns)},
      {"high_eta_ns", OrNull(suspect.high_eta_ns)},
      {"before_bytes", suspect.before.bytes},
      {"before_blocks", suspect.before.blocks},
      {"stacks", Json::array()}};
  for (const analysis::LeakStack& stack : suspect.stacks)
    json["stacks"].push_back(StackJson(stack, stacks));
  return json;
}

Json GrowingJson(const LeakSuspect& growing, analysis::StackTexts& stacks,
                 analysis::SourceLines& sources) {
  Json json = {{"what", WhatIsKept(growing)},
               {"device", DeviceOrNull(growing.device)},
               {"heap", growing.heap},
               {"bytes_per_cycle", SlopeJson(growing.bytes_per_cycle)},
               {"bytes", growing.bytes},
               {"count", growing.count},
               {"common_frame", FrameOrNull(growing.common_frame)},
               {"source", OrNull(growing.common_frame ? sources.Line(*growing.common_frame) : "")},
               {"stacks", Json::array()}};
  for (const analysis::LeakStack& stack : growing.stacks)
    json["stacks"].push_back(StackJson(stack, stacks));
  return json;
}

}  // namespace

std::string LeaksJson(const LeakReport& report, const LeaksShown& shown,
                      analysis::StackTexts& stacks, analysis::SourceLines& sources) {
  Json json = NewJson("leaks", shown.file);
  json["cycles"] = {{"count", report.cycles.count},
                    {"source", report.cycles.source},
                    {"period_ns", report.cycles.period_ns},
                    {"inferred", report.cycles.inferred},
                    {"clear", report.cycles.clear}};
  json["enough"] = report.enough;
  json["has_history"] = shown.has_history;
  json["cycles_needed"] = report.cycles_needed;
  json["watched_ns"] = report.watched_ns;
  json["suspects"] = Json::array();
  for (size_t i = 0; i < std::min(shown.top, report.suspects.size()); ++i)
    json["suspects"].push_back(SuspectJson(report.suspects[i], stacks, sources));
  json["growing"] = Json::array();
  for (const LeakSuspect& growing : report.growing)
    json["growing"].push_back(GrowingJson(growing, stacks, sources));
  json["benign"] = Json::array();
  for (const analysis::BenignGrowth& growth : report.benign) {
    json["benign"].push_back({{"label", growth.label},
                              {"frame", FrameOrNull(growth.frame)},
                              {"bytes", growth.bytes},
                              {"bytes_per_cycle", SlopeJson(growth.bytes_per_cycle)},
                              {"room_bytes", OrNull(growth.room)}});
  }
  json["minima"] = Json::array();
  for (const analysis::CycleMinima& minima : report.minima) {
    json["minima"].push_back({{"device", DeviceOrNull(minima.device)},
                              {"first_cycle", minima.first_cycle},
                              {"first_bytes", minima.first_bytes},
                              {"last_bytes", minima.last_bytes},
                              {"bytes_per_cycle", SlopeJson(minima.bytes_per_cycle)},
                              {"low_bytes_per_cycle", SlopeJson(minima.low_bytes_per_cycle)},
                              {"high_bytes_per_cycle", SlopeJson(minima.high_bytes_per_cycle)},
                              {"cycles_per_value", minima.cycles_per_value},
                              {"values", minima.values}});
  }
  json["before"] = Json::array();
  for (const analysis::HeldBefore& before : report.before) {
    json["before"].push_back({{"device", DeviceOrNull(before.device)},
                              {"heap", before.heap.empty() ? Json() : Json(before.heap)},
                              {"bytes", before.bytes},
                              {"blocks", before.blocks},
                              {"freed_bytes", before.freed_bytes},
                              {"freed_blocks", before.freed_blocks},
                              {"unknown_freed_bytes", before.unknown_freed_bytes},
                              {"unknown_freed_blocks", before.unknown_freed_blocks}});
  }
  json["details_from_ns"] = OrNull(report.details_from_ns);
  json["lacks"] = shown.lacks;
  return JsonText(json);
}

}  // namespace gmt::answers
