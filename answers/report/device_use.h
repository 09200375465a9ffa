// answers/report/device_use.h
//
// The part of a report about a device's memory beyond what is recorded
// (analysis/trace/device_use.h), as text and as JSON.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_DEVICE_USE_H_
#define GMT_ANSWERS_REPORT_DEVICE_USE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/trace/device_use.h"

namespace gmt::answers {

// Returns a line for each source that reported the device, at the moment when it was fullest. "" if
// no source did.
std::string DeviceUseText(const std::vector<analysis::DeviceUse>& uses, int32_t device);

// Returns the key "device_use" of one device: [{source, samples, last {...}, fullest {...}}].
nlohmann::ordered_json DeviceUseJson(const std::vector<analysis::DeviceUse>& uses, int32_t device);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_DEVICE_USE_H_
