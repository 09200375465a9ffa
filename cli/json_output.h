// cli/json_output.h
//
// The common form of every --json output: one object, whose first key names its schema.
//
// Thread safety: pure functions; printing goes to stdout.

#ifndef GMT_CLI_JSON_OUTPUT_H_
#define GMT_CLI_JSON_OUTPUT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace gmt::cli {

// Returns {"schema": "gpumemtrace.VERB/1", "file": FILE}, without "file" if FILE is empty.
nlohmann::ordered_json NewJson(const std::string& verb, const std::string& file);

// Prints one indented object to stdout. Replaces invalid UTF-8 by replacement characters.
void PrintJson(const nlohmann::ordered_json& object);

// Returns null if the value is unknown.
template <typename T, typename Json = nlohmann::ordered_json>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
template <typename Json = nlohmann::ordered_json>
Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace gmt::cli

#endif  // GMT_CLI_JSON_OUTPUT_H_
