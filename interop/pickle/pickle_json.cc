#include "interop/pickle/pickle_json.h"

#include <string>

#include "interop/event_log/event_log_json.h"

namespace gmt::interop {
namespace {

using Type = PickleValue::Type;

class Converter {
 public:
  Converter(const PickleTree& tree, const JsonLimits& limits) : tree_(tree), left_(limits) {}

  Json Convert(PickleValue value) {
    if (left_.values == 0 || left_.depth == 0) return nullptr;
    --left_.values;
    switch (value.type()) {
      case Type::kNone:
        return nullptr;
      case Type::kBool:
        return value.payload() != 0;
      case Type::kInt:
      case Type::kBigInt: {
        const auto number = tree_.Int(value);
        return number.has_value() ? Json(*number) : Json(nullptr);
      }
      case Type::kFloat:
        return *tree_.Float(value);
      case Type::kString:
        return Take(*tree_.String(value));
      case Type::kBytes: {
        Json list = Json::array();
        if (tree_.Bytes(value).size() > left_.values) return nullptr;
        left_.values -= tree_.Bytes(value).size();
        for (char byte : tree_.Bytes(value)) list.push_back(static_cast<uint8_t>(byte));
        return list;
      }
      case Type::kTuple:
      case Type::kList:
        return ConvertList(value);
      case Type::kDict:
        return ConvertDict(value);
    }
    return nullptr;
  }

 private:
  Json Take(std::string_view text) {
    if (text.size() > left_.text) return nullptr;
    left_.text -= text.size();
    return text;
  }

  Json ConvertList(PickleValue list) {
    Json json = Json::array();
    --left_.depth;
    for (PickleValue item : tree_.ItemsOf(list)) {
      if (left_.values == 0) break;
      json.push_back(Convert(item));
    }
    ++left_.depth;
    return json;
  }

  Json ConvertDict(PickleValue dict) {
    Json json = Json::object();
    --left_.depth;
    tree_.ForEach(dict, [&](PickleValue key, PickleValue item) {
      if (left_.values == 0) return;
      const auto text = tree_.String(key);
      const Json name = text.has_value() ? Take(*text) : Json(Line(Convert(key)));
      if (name.is_string()) json[name.get<std::string>()] = Convert(item);
    });
    ++left_.depth;
    return json;
  }

  const PickleTree& tree_;
  JsonLimits left_;
};

}  // namespace

Json JsonOf(const PickleTree& tree, PickleValue value, const JsonLimits& limits) {
  return Converter(tree, limits).Convert(value);
}

std::string JsonText(const PickleTree& tree, PickleValue value, const JsonLimits& limits) {
  return Line(JsonOf(tree, value, limits));
}

}  // namespace gmt::interop
