// analysis/confidence.h
//
// How certain an answer is.
//
//   high     arithmetic on recorded values
//   medium   a sound inference, wrong only in cases that the answer's page names
//   low      a hint, and labelled as one
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_CONFIDENCE_H_
#define GMT_ANALYSIS_CONFIDENCE_H_

#include <cstdint>
#include <string_view>

namespace gmt::analysis {

enum class Confidence : uint8_t { kLow, kMedium, kHigh };

inline std::string_view NameOf(Confidence confidence) {
  switch (confidence) {
    case Confidence::kLow:
      return "low";
    case Confidence::kMedium:
      return "medium";
    case Confidence::kHigh:
      return "high";
  }
  return "low";
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CONFIDENCE_H_
