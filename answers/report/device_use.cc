#include "answers/report/device_use.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/text.h"
#include "answers/json.h"

namespace gmt::answers {
namespace {

using analysis::DeviceUse;
using Json = nlohmann::ordered_json;

Json AtJson(const DeviceUse::At& at) {
  return {{"t_ns", at.t_ns},
          {"recorded_bytes", at.recorded_bytes},
          {"process_bytes", OrNull(at.process_bytes)},
          {"others_bytes", OrNull(at.others_bytes)},
          {"used_bytes", at.total_bytes == 0 ? Json(nullptr) : Json(at.used_bytes)},
          {"total_bytes", at.total_bytes == 0 ? Json(nullptr) : Json(at.total_bytes)},
          {"reserved_bytes", OrNull(at.reserved_bytes)},
          {"free_bytes", OrNull(at.free_bytes)}};
}

std::string FreeText(const DeviceUse::At& at) {
  return at.free_bytes ? Bytes(*at.free_bytes) : "unknown amount";
}

std::string Line(const DeviceUse& use) {
  const DeviceUse::At& at = use.fullest;
  if (at.total_bytes == 0) {
    return fmt::format("{}: {} free at {}; recorded {}\n", use.source, FreeText(at),
                       Duration(at.t_ns), Bytes(at.recorded_bytes));
  }
  std::string text = fmt::format("{}: {} of {} used at {}", use.source, Bytes(at.used_bytes),
                                 Bytes(at.total_bytes), Duration(at.t_ns));
  if (!at.process_bytes)
    return text + fmt::format(" by all processes; recorded {}\n", Bytes(at.recorded_bytes));
  text += fmt::format("; this process {}, recorded {}", Bytes(*at.process_bytes),
                      Bytes(at.recorded_bytes));
  if (at.others_bytes.value_or(0) > 0)
    text += fmt::format("; other processes {}", Bytes(*at.others_bytes));
  return text + "\n";
}

}  // namespace

std::string DeviceUseText(const std::vector<DeviceUse>& uses, int32_t device) {
  std::string text;
  for (const DeviceUse& use : uses) {
    if (use.device == device) text += Line(use);
  }
  return text;
}

Json DeviceUseJson(const std::vector<DeviceUse>& uses, int32_t device) {
  Json json = Json::array();
  for (const DeviceUse& use : uses) {
    if (use.device != device) continue;
    json.push_back({{"source", use.source},
                    {"samples", use.samples},
                    {"last", AtJson(use.last)},
                    {"fullest", AtJson(use.fullest)}});
  }
  return json;
}

}  // namespace gmt::answers
