#include <nlohmann/json.hpp>

#include "answers/diff/diff_text.h"
#include "answers/json.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Diff;
using analysis::DiffRow;
using Json = nlohmann::ordered_json;

Json Index(int32_t device) {
  return device == analysis::kHostDevice ? Json(nullptr) : Json(device);
}

Json RowJson(const DiffRow& row) {
  return {{"delta_bytes", row.delta_bytes()},
          {"base_bytes", row.base_bytes},
          {"new_bytes", row.new_bytes},
          {"base_count", row.base_count},
          {"new_count", row.new_count},
          {"heap", row.heap},
          {"category", std::string(analysis::NameOf(row.category))},
          {"moved", row.moved},
          {"base_id", OrNull(row.base_id)},
          {"new_id", OrNull(row.new_id)},
          {"label", LabelOf(row.frames, row.forward_frames, /*recomputed=*/false)},
          {"frames", FramesJson(row.frames)},
          {"forward_frames",
           row.forward_frames.empty() ? Json(nullptr) : FramesJson(row.forward_frames)}};
}

void AddDiff(const Diff& diff, const DiffSource& source, Json& json) {
  json["device"] = Index(diff.device);
  json["base_device"] = Index(diff.base_device);
  json["aligned_on"] = diff.aligned_on;
  json["base_t_ns"] = diff.base_at.t_ns;
  json["new_t_ns"] = diff.new_at.t_ns;
  json["base_bytes"] = diff.base_bytes;
  json["new_bytes"] = diff.new_bytes;
  json["delta_bytes"] = diff.delta_bytes();
  json["base_peak_bytes"] = diff.base_peak_bytes;
  json["new_peak_bytes"] = diff.new_peak_bytes;
  json["base_reserved_bytes"] = diff.base_reserved_bytes;
  json["new_reserved_bytes"] = diff.new_reserved_bytes;
  json["rows"] = Json::array();
  for (const DiffRow& row : diff.rows) json["rows"].push_back(RowJson(row));
  json["unchanged"] = {{"stacks", diff.unchanged_stacks}, {"bytes", diff.unchanged_bytes}};
  json["new_stacks"] = diff.new_stacks;
  json["gone_stacks"] = diff.gone_stacks;
  json["moved_stacks"] = diff.moved_stacks;
  json["failed"] = source.limit && IsAbove(diff, *source.limit);
}

}  // namespace

std::string DiffJson(const analysis::Comparison& comparison, const DiffSource& source) {
  Json json = {{"schema", "gpumemtrace.diff/1"}, {"file", source.new_file}};
  json["base_file"] = source.base_file;
  AddDiff(comparison.devices.empty() ? Diff{} : Largest(comparison), source, json);
  json["failed"] = HasFailed(comparison, source);
  json["devices"] = Json::array();
  for (const Diff& diff : comparison.devices) {
    json["devices"].emplace_back();
    AddDiff(diff, source, json["devices"].back());
  }
  json["differences"] = comparison.differences;
  json["base_lacks"] = source.base_lacks;
  json["new_lacks"] = source.new_lacks;
  // A path or a symbol need not be valid UTF-8.
  return JsonText(json, -1);
}

}  // namespace gmt::answers
