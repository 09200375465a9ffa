#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "analysis/fragmentation/fragmentation_history.h"
#include "answers/frag/frag_text.h"
#include "answers/frag/pins.h"
#include "answers/json.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Examination;
using analysis::Fragmentation;
using analysis::Piece;
using Json = nlohmann::ordered_json;

constexpr size_t kMoments = 120;  // as many as a chart can show

Json SplitJson(const analysis::FragmentationSplit& split) {
  return {{"releasable", split.releasable},
          {"pinned", split.pinned},
          {"stream", split.stream},
          {"private_pool", split.private_pool},
          {"awaiting_stream", split.awaiting_stream}};
}

Json SegmentJson(const analysis::SegmentMap& segment) {
  uint64_t bytes[4] = {}, largest = 0, run = 0;
  for (const Piece& piece : segment.pieces) {
    bytes[piece.kind] += piece.size;
    run = piece.is_free() ? run + piece.size : 0;
    largest = std::max(largest, run);
  }
  return {{"address", segment.address},
          {"bytes", segment.size},
          {"stream", OrNull(segment.stream)},
          {"small", segment.is_small},
          {"private", segment.is_private},
          {"expandable", segment.is_expandable},
          {"live_bytes", bytes[Piece::kLive]},
          {"free_bytes", bytes[Piece::kFree] + bytes[Piece::kReleasable]},
          {"releasable_bytes", bytes[Piece::kReleasable]},
          {"awaiting_bytes", bytes[Piece::kAwaiting]},
          {"largest_free_bytes", largest}};
}

Json HistoryJson(const Fragmentation& found, const Examination& examination) {
  Json json = Json::array();
  for (const analysis::FragmentationMoment& moment :
       analysis::FragmentationHistory(examination, found.device, kMoments)) {
    json.push_back({{"t_ns", moment.t_ns},
                    {"reserved_bytes", moment.reserved_bytes},
                    {"allocated_bytes", moment.allocated_bytes},
                    {"split", SplitJson(moment.split)}});
  }
  return json;
}

Json VaryingJson(const FragReplays& replays, const Examination& examination,
                 analysis::SourceLines& sources, size_t top) {
  Json sites = Json::array();
  for (const analysis::VaryingSite& site : replays.varying) {
    if (sites.size() == top) break;
    Json& row = sites.emplace_back(
        Json{{"id", StackId(site.stack, site.forward_stack)},
             {"requests", site.requests},
             {"sizes", site.sizes},
             {"smallest_bytes", site.smallest},
             {"largest_bytes", site.largest},
             {"held_bytes", site.held_bytes},
             {"source", OrNull(SourceText(examination, site.stack, site.forward_stack, sources))}});
    AddStack(examination, site.stack, site.forward_stack, row);
  }
  return {{"sites", std::move(sites)}, {"padded_reserved_bytes", OrNull(replays.padded)}};
}

void AddDevice(const DeviceFragmentation& device, const Examination& examination,
               analysis::SourceLines& sources, size_t top, Json& json) {
  const auto& [found, replays] = device;
  json["device"] = found.device;
  json["at"] = found.at.name;
  json["t_ns"] = found.at.t_ns;
  json["reserved_bytes"] = found.reserved_bytes;
  json["allocated_bytes"] = found.allocated_bytes;
  json["free_bytes"] = found.free_bytes;
  json["largest_free_bytes"] = found.largest_free_bytes;
  json["requesting_stream"] = OrNull(found.requesting_stream);
  json["split"] = SplitJson(found.split);
  json["rounding_bytes"] = OrNull(found.rounding_bytes);
  json["expandable_bytes"] = found.expandable_bytes;
  json["expandable_reserved_bytes"] =
      replays.expandable ? Json(replays.expandable->bytes) : Json(nullptr);
  json["expandable_peak_reserved_bytes"] =
      replays.expandable ? Json(replays.expandable->peak_bytes) : Json(nullptr);
  json["recorded_peak_reserved_bytes"] =
      replays.expandable ? Json(replays.recorded_peak_bytes) : Json(nullptr);
  json["varying_sizes"] = VaryingJson(replays, examination, sources, top);
  json["pins"] = PinsJson(found.pin_groups, examination, sources, top);
  json["segments"] = Json::array();
  for (const analysis::SegmentMap& segment : found.segments) {
    json["segments"].push_back(SegmentJson(segment));
  }
}

}  // namespace

std::string FragJson(const std::vector<DeviceFragmentation>& devices,
                     const Examination& examination, analysis::SourceLines& sources,
                     const std::string& file, size_t top) {
  Json json = NewJson("frag", file);
  const auto most = MostFree(devices);
  AddDevice(most == devices.end() ? DeviceFragmentation() : *most, examination, sources, top, json);
  json["devices"] = Json::array();
  for (const DeviceFragmentation& device : devices) {
    Json& added = json["devices"].emplace_back(Json::object());
    AddDevice(device, examination, sources, top, added);
    added["history"] = HistoryJson(device.found, examination);
  }
  return JsonText(json);
}

}  // namespace gmt::answers
