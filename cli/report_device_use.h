// cli/report_device_use.h
//
// What a report says of a device's memory beside what is recorded (analysis/device_use.h), for people
// and for programs.
//
// Thread safety: pure functions.

#ifndef GMT_CLI_REPORT_DEVICE_USE_H_
#define GMT_CLI_REPORT_DEVICE_USE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/device_use.h"

namespace gmt::cli {

// A line for each source that told of the device when it was fullest; empty where none did.
std::string DeviceUseText(const std::vector<analysis::DeviceUse>& uses, int32_t device);

// The key "device_use" of one device: [{source, samples, last {...}, fullest {...}}].
nlohmann::ordered_json DeviceUseJson(const std::vector<analysis::DeviceUse>& uses, int32_t device);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_DEVICE_USE_H_
