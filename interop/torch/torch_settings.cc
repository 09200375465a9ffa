#include "interop/torch/torch_settings.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "format/units.h"
#include "nlohmann/json.hpp"

namespace gmt::interop {
namespace {

bool ParseBool(std::string_view value, bool* out) {
  if (value != "True" && value != "False") return false;
  *out = value == "True";
  return true;
}

bool ParseMiB(std::string_view value, int64_t* out) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &number)) return false;
  if (number < 0 || number > INT64_MAX / int64_t{kMiB}) return false;
  *out = number * int64_t{kMiB};
  return true;
}

bool ParseNumber(std::string_view value, int64_t* out) {
  return absl::SimpleAtoi(absl::string_view(value.data(), value.size()), out);
}

bool ParseThreshold(std::string_view value, double* out) {
  return absl::SimpleAtod(absl::string_view(value.data(), value.size()), out);
}

bool Apply(std::string_view key, std::string_view value,
           const std::optional<analysis::TorchVersion>& torch, TorchSettings* settings) {
  if (key == "max_split_size_mb") return ParseMiB(value, &settings->max_split_size);
  if (key == "garbage_collection_threshold") {
    return ParseThreshold(value, &settings->garbage_collection_threshold);
  }
  if (key == "expandable_segments") return ParseBool(value, &settings->expandable_segments);
  if (key == "pinned_num_register_threads") {
    return ParseNumber(value, &settings->pinned_num_register_threads);
  }
  if (key == "release_lock_on_cudamalloc") {
    return ParseBool(value, &settings->release_lock_on_cudamalloc);
  }
  if (key == "pinned_use_cuda_host_register") {
    return ParseBool(value, &settings->pinned_use_cuda_host_register);
  }
  if (key == "graph_capture_record_stream_reuse") {
    return ParseBool(value, &settings->graph_capture_record_stream_reuse);
  }
  if (key == "roundup_power2_divisions") {
    return ReadRoundupDivisions(std::string(value), torch, &settings->roundup_power2_divisions);
  }
  return false;
}

constexpr int kMaxDepth = 64;

void WriteJson(const nlohmann::json& value, int depth, PickleWriter& pickle) {
  if (depth > kMaxDepth) return pickle.None();
  switch (value.type()) {
    case nlohmann::json::value_t::object:
      pickle.BeginDict();
      for (const auto& [key, item] : value.items()) {
        pickle.String(key);
        WriteJson(item, depth + 1, pickle);
      }
      return pickle.End();
    case nlohmann::json::value_t::array:
      pickle.BeginList();
      for (const nlohmann::json& item : value) WriteJson(item, depth + 1, pickle);
      return pickle.End();
    case nlohmann::json::value_t::string:
      return pickle.String(value.get_ref<const std::string&>());
    case nlohmann::json::value_t::boolean:
      return pickle.Bool(value.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return pickle.Int(value.get<int64_t>());
    case nlohmann::json::value_t::number_unsigned:
      return pickle.Unsigned(value.get<uint64_t>());
    case nlohmann::json::value_t::number_float:
      return pickle.Float(value.get<double>());
    default:
      return pickle.None();
  }
}

}  // namespace

void WriteStatedSettings(const std::vector<analysis::NamedText>& settings, PickleWriter& pickle) {
  pickle.BeginDict();
  for (const analysis::NamedText& setting : settings) {
    pickle.String(setting.name);
    const auto value = setting.is_json ? nlohmann::json::parse(setting.text, nullptr, false)
                                       : nlohmann::json(nlohmann::json::value_t::discarded);
    value.is_discarded() ? pickle.String(setting.text) : WriteJson(value, 0, pickle);
  }
  pickle.End();
}

TorchSettings ParseTorchSettings(std::string_view text,
                                 const std::optional<analysis::TorchVersion>& torch) {
  TorchSettings settings;
  settings.text = std::string(text);
  std::string tight = settings.text;
  tight.erase(std::remove_if(tight.begin(), tight.end(), absl::ascii_isspace), tight.end());
  for (const std::string& text_of_option : analysis::SplitAllocatorOptions(tight)) {
    const std::string_view option = text_of_option;
    const size_t colon = option.find(':');
    const std::string_view key = option.substr(0, colon);
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : option.substr(colon + 1);
    if (!Apply(key, value, torch, &settings)) settings.others.emplace_back(key, value);
  }
  return settings;
}

void WriteTorchSettings(const TorchSettings& settings, PickleWriter& pickle) {
  const auto boolean = [&](const char* key, bool value) {
    pickle.String(key);
    pickle.Bool(value);
  };
  const auto number = [&](const std::string& key, int64_t value) {
    pickle.String(key);
    pickle.Int(value);
  };
  pickle.BeginDict();
  pickle.String("PYTORCH_CUDA_ALLOC_CONF");
  pickle.String(settings.text);
  number("max_split_size", settings.max_split_size);
  pickle.String("garbage_collection_threshold");
  pickle.Float(settings.garbage_collection_threshold);
  boolean("expandable_segments", settings.expandable_segments);
  number("pinned_num_register_threads", settings.pinned_num_register_threads);
  boolean("release_lock_on_cudamalloc", settings.release_lock_on_cudamalloc);
  boolean("pinned_use_cuda_host_register", settings.pinned_use_cuda_host_register);
  boolean("graph_capture_record_stream_reuse", settings.graph_capture_record_stream_reuse);
  pickle.String("roundup_power2_divisions");
  pickle.BeginDict();
  for (size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i) {
    number(absl::StrCat(uint64_t{1} << i), settings.roundup_power2_divisions[i]);
  }
  pickle.End();
  for (const auto& [key, value] : settings.others) {
    pickle.String(key);
    pickle.String(value);
  }
  pickle.End();
}

}  // namespace gmt::interop
