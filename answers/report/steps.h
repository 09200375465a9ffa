// answers/report/steps.h
//
// What stays allocated and what varies with the batch (analysis/categories/step_profile.h), in a
// report.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_STEPS_H_
#define GMT_ANSWERS_REPORT_STEPS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/categories/step_profile.h"

namespace gmt::answers {

// Returns "" if the device has no profile.
std::string StepProfileText(const std::vector<analysis::StepProfile>& profiles, int32_t device);

// Returns null if the device has no profile.
nlohmann::ordered_json StepProfileJson(const std::vector<analysis::StepProfile>& profiles,
                                       int32_t device);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_STEPS_H_
