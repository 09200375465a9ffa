// cli/json_output.h
//
// What every --json output has in common: one object, whose first key names its schema.
//
// Thread safety: pure functions; printing goes to stdout.

#ifndef GMT_CLI_JSON_OUTPUT_H_
#define GMT_CLI_JSON_OUTPUT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace gmt::cli {

// {"schema": "gpumemtrace.VERB/1", "file": FILE}; without "file" where it is empty.
nlohmann::ordered_json NewJson(const std::string& verb, const std::string& file);

// Prints one object, indented, on stdout. Text that is no UTF-8 gets replacement characters.
void PrintJson(const nlohmann::ordered_json& object);

// null for what is not known.
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
