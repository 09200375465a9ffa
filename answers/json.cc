#include "answers/json.h"

#include <nlohmann/json.hpp>

namespace gmt::answers {

using Json = nlohmann::ordered_json;

Json NewJson(const std::string& verb, const std::string& file) {
  Json object = {{"schema", "gpumemtrace." + verb + "/1"}};
  if (!file.empty()) object["file"] = file;
  return object;
}

std::string JsonText(const Json& object, int indent) {
  return object.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gmt::answers
