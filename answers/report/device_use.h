// answers/report/device_use.h
//
// What a report says of a device's memory beside what is recorded (analysis/trace/device_use.h), for people
// and for programs.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_DEVICE_USE_H_
#define GMT_ANSWERS_REPORT_DEVICE_USE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/trace/device_use.h"

namespace gmt::answers {

// A line for each source that told of the device when it was fullest; empty where none did.
std::string DeviceUseText(const std::vector<analysis::DeviceUse>& uses, int32_t device);

// The key "device_use" of one device: [{source, samples, last {...}, fullest {...}}].
nlohmann::ordered_json DeviceUseJson(const std::vector<analysis::DeviceUse>& uses, int32_t device);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_DEVICE_USE_H_
