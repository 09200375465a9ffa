// viewer/questions/predicted_curve.h
//
// What PyTorch's allocator would have reserved with other settings, by column of a timeline: the
// replay of `gpumemtrace whatif` (analysis/whatif/replay.h).
//
// Ownership: the examination must outlive it. Thread safety: one thread at a time.
// Cost: two replays for each device and settings that are asked for the first time.

#ifndef GMT_VIEWER_QUESTIONS_PREDICTED_CURVE_H_
#define GMT_VIEWER_QUESTIONS_PREDICTED_CURVE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/whatif/replay.h"
#include "viewer/index/tiles.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

// The replay with each of these settings. Fails as Predictions::Curve() does. Cost: a replay for
// each, and one more.
std::vector<absl::StatusOr<analysis::ReservedCurve>> PredictReserved(
    const analysis::Examination& examination, int32_t device,
    const std::vector<std::string>& settings);

class Predictions {
 public:
  explicit Predictions(const analysis::Examination& examination) : examination_(examination) {}

  // Fails with INVALID_ARGUMENT for settings that PyTorch refuses, and with FAILED_PRECONDITION if
  // the recording cannot be replayed, or the replay does not agree with it.
  absl::StatusOr<PredictedCurve> Curve(int32_t device, const std::string& settings,
                                       const ColumnPeaks& columns);

 private:
  const analysis::Examination& examination_;
  std::map<std::pair<int32_t, std::string>, absl::StatusOr<analysis::ReservedCurve>> replays_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_PREDICTED_CURVE_H_
