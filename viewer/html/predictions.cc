#include "viewer/html/predictions.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "analysis/whatif/replay.h"
#include "viewer/questions/predicted_curve.h"

namespace gmt::viewer {
namespace {

using analysis::ReservedChange;
using analysis::ReservedCurve;
using nlohmann::ordered_json;

// Those of viewer/page/src/views/timeline/prediction.ts.
const std::vector<std::string>& OfferedSettings() {
  static const std::vector<std::string> kSettings = {
      "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:8"};
  return kSettings;
}

ordered_json CurveJson(const absl::StatusOr<ReservedCurve>& curve) {
  if (!curve.ok()) return {{"why", std::string(curve.status().message())}};
  if (curve->changes.size() > kMaxPredictedChanges)
    return {{"why", "it changes too often for a file: see it in gpumemtrace view"}};
  auto events = ordered_json::array(), bytes = ordered_json::array();
  ReservedChange last;
  for (const ReservedChange& change : curve->changes) {
    events.push_back(change.step - last.step);
    bytes.push_back(static_cast<int64_t>(change.bytes - last.bytes));
    last = change;
  }
  return {{"events", std::move(events)},
          {"bytes", std::move(bytes)},
          {"peak_bytes", curve->result.peak_reserved},
          {"retries", curve->result.retries},
          {"failure", curve->first_failure ? ordered_json(*curve->first_failure) : nullptr}};
}

}  // namespace

ordered_json PredictionTable(const StandaloneFile& file) {
  std::set<int32_t> devices;
  for (const Lane& lane : file.index->lanes()) {
    if (lane.heap_name == "pytorch" && lane.device != analysis::kHostDevice)
      devices.insert(lane.device);
  }
  auto table = ordered_json::object();
  for (const int32_t device : devices) {
    const auto curves = PredictReserved(file.recording->examination(), device, OfferedSettings());
    ordered_json& of_device = table[absl::StrCat(device)] = ordered_json::object();
    for (size_t i = 0; i < curves.size(); ++i)
      of_device[OfferedSettings()[i]] = CurveJson(curves[i]);
  }
  return table;
}

}  // namespace gmt::viewer
