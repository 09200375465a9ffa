#include "cli/json_output.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace gmt::cli {

using Json = nlohmann::ordered_json;

Json NewJson(const std::string& verb, const std::string& file) {
  Json object = {{"schema", "gpumemtrace." + verb + "/1"}};
  if (!file.empty()) object["file"] = file;
  return object;
}

void PrintJson(const Json& object) {
  const std::string text = object.dump(2, ' ', false, Json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace gmt::cli
