// viewer/html/predictions.h
//
// What PyTorch's allocator would have reserved with the settings that the timeline offers: the
// replays of `gpumemtrace whatif`, made when the file is written, because a page cannot make them.
// viewer/page/src/data/embedded/predicted_curve.ts reads them.
//
// Thread safety: pure function. Cost: a replay for each setting and device, and one more.

#ifndef GMT_VIEWER_HTML_PREDICTIONS_H_
#define GMT_VIEWER_HTML_PREDICTIONS_H_

#include <cstddef>
#include <nlohmann/json.hpp>

#include "viewer/html/standalone_file.h"

namespace gmt::viewer {

// A curve with more changes is left out, and the page says so.
inline constexpr size_t kMaxPredictedChanges = 50'000;

// Returns, by device and by setting, the changes of reserved memory (events and bytes, each as the
// difference to the one before), the peak, the retries and the event of the failure; or why there
// is no prediction.
nlohmann::ordered_json PredictionTable(const StandaloneFile& file);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_PREDICTIONS_H_
