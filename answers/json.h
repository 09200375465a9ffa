// answers/json.h
//
// The common form of every --json output: one object, whose first key names its schema.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_JSON_H_
#define GMT_ANSWERS_JSON_H_

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gmt::answers {

// Returns {"schema": "gpumemtrace.VERB/1", "file": FILE}, without "file" if FILE is empty.
nlohmann::ordered_json NewJson(const std::string& verb, const std::string& file);

// Returns the object as text that ends with a newline, indented by `indent` columns; -1: on one
// line. Text that is not UTF-8 gets replacement characters.
std::string JsonText(const nlohmann::ordered_json& object, int indent = 2);

// Writes in parts what JsonText() would return for the members of `before`, a list `name` with
// `count` items and the members of `after`, without having the whole list in memory.
// REQUIRES: neither object is empty.
void WriteJson(const nlohmann::ordered_json& before, const std::string& name, size_t count,
               const std::function<nlohmann::ordered_json(size_t)>& item,
               const nlohmann::ordered_json& after,
               const std::function<void(std::string_view)>& write);

// Returns null if the value is unknown.
template <typename T, typename Json = nlohmann::ordered_json>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
template <typename Json = nlohmann::ordered_json>
Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_JSON_H_
