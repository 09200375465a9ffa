#include "answers/report/run.h"

#include <nlohmann/json.hpp>

#include "answers/json.h"

namespace gmt::answers {
namespace {

using Json = nlohmann::ordered_json;

Json TextsJson(const std::vector<analysis::NamedText>& texts) {
  Json json = Json::object();
  for (const analysis::NamedText& each : texts) json[each.name] = each.text;
  return json;
}

}  // namespace

Json RunJson(const analysis::Trace& trace, bool complete) {
  return {{"argv", trace.argv},
          {"pid", trace.pid == 0 ? Json(nullptr) : Json(trace.pid)},
          {"imported_from", OrNull(trace.imported_from)},
          {"complete", complete},
          {"duration_ns", trace.end_t_ns},
          {"libraries", TextsJson(trace.libraries)},
          {"settings", TextsJson(trace.settings)},
          {"sources", TextsJson(trace.sources)}};
}

}  // namespace gmt::answers
