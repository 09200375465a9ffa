#include "interop/arrow/text_dictionary.h"

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"

namespace gmt::interop {
namespace {

std::string WithValidUtf8(std::string_view text) {
  using Json = nlohmann::json;
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

}  // namespace

int32_t TextDictionary::NumberOf(std::string_view text) {
  const auto found = numbers_.find(absl::string_view(text.data(), text.size()));
  if (found != numbers_.end()) return found->second;
  const std::string valid = WithValidUtf8(text);
  if (valid != text) {
    const int32_t number = NumberOf(valid);
    numbers_.emplace(text, number);
    return number;
  }
  const auto number = static_cast<int32_t>(texts_.size());
  texts_.push_back(numbers_.emplace(text, number).first->first);
  return number;
}

int32_t TextDictionary::NumberOfLasting(std::string_view text) {
  Known& known = latest_[reinterpret_cast<uintptr_t>(text.data()) / 8 % latest_.size()];
  if (known.text.data() != text.data() || known.text.size() != text.size())
    known = {text, NumberOf(text)};
  return known.number;
}

}  // namespace gmt::interop
