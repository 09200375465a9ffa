#include "answers/json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

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

void WriteJson(const Json& before, const std::string& name, size_t count,
               const std::function<Json(size_t)>& item, const Json& after,
               const std::function<void(std::string_view)>& write) {
  constexpr std::string_view kEndOfObject = "\n}\n";
  std::string text = JsonText(before);
  text.resize(text.size() - kEndOfObject.size());
  write(absl::StrCat(text, ",\n  \"", name, "\": ["));
  for (size_t i = 0; i < count; ++i) {
    text = JsonText(item(i));
    text.pop_back();
    // A newline within a string is written as an escape.
    write(absl::StrCat(i == 0 ? "" : ",", "\n    ", absl::StrReplaceAll(text, {{"\n", "\n    "}})));
  }
  write(count == 0 ? "]," : "\n  ],");
  write(std::string_view(JsonText(after)).substr(1));
}

}  // namespace gmt::answers
