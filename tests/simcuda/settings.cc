#include "tests/simcuda/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/simcuda/device_identity.h"

namespace sim {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY, the default code of a FailRule
constexpr std::array<const char*, static_cast<size_t>(CallGroup::kCount)> kGroupNames = {
    "alloc", "free", "host", "map", "copy", "launch", "sync", "other"};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = text.find(separator, begin);
    if (end == std::string::npos) end = text.size();
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Splits "123abc" into 123 and "abc". Returns false if there is no leading digit.
bool NumberAndUnit(const std::string& text, uint64_t* number, std::string* unit) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  *number = std::strtoull(text.c_str(), &end, 10);
  *unit = end;
  return true;
}

bool ParseNumber(const std::string& text, uint64_t* number) {
  std::string unit;
  return NumberAndUnit(text, number, &unit) && unit.empty();
}

bool ParseCapability(const std::string& text, Settings* settings) {
  int major = 0, minor = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d.%d%c", &major, &minor, &rest) != 2) return false;
  settings->compute_major = major;
  settings->compute_minor = minor;
  return true;
}

bool ParseLatency(const std::string& text, Settings* settings) {
  for (const std::string& part : Split(text, ',')) {
    size_t equals = part.find('=');
    if (equals == std::string::npos) return false;
    size_t group = 0;
    while (group < kGroupNames.size() && part.substr(0, equals) != kGroupNames[group]) ++group;
    if (group == kGroupNames.size()) return false;
    if (!ParseDuration(part.substr(equals + 1), &settings->latency_ns[group])) return false;
  }
  return true;
}

// Parses name:nth[+][=code], separated by commas.
bool ParseFailures(const std::string& text, Settings* settings) {
  std::vector<FailRule> rules;
  for (std::string part : Split(text, ',')) {
    FailRule rule;
    rule.code = kOutOfMemory;
    uint64_t code = 0;
    if (size_t equals = part.find('='); equals != std::string::npos) {
      if (!ParseNumber(part.substr(equals + 1), &code) || code == 0) return false;
      rule.code = static_cast<int>(code);
      part.resize(equals);
    }
    size_t colon = part.find(':');
    if (colon == 0 || colon == std::string::npos) return false;
    rule.call = part.substr(0, colon);
    std::string count = part.substr(colon + 1);
    if (!count.empty() && count.back() == '+') {
      rule.onwards = true;
      count.pop_back();
    }
    if (!ParseNumber(count, &rule.nth) || rule.nth == 0) return false;
    rules.push_back(rule);
  }
  settings->failures = std::move(rules);
  return true;
}

}  // namespace

bool ParseSize(const std::string& text, uint64_t* bytes) {
  uint64_t number = 0;
  std::string unit;
  if (!NumberAndUnit(text, &number, &unit)) return false;
  int shift = 0;
  if (unit == "K" || unit == "KiB") {
    shift = 10;
  } else if (unit == "M" || unit == "MiB") {
    shift = 20;
  } else if (unit == "G" || unit == "GiB") {
    shift = 30;
  } else if (!unit.empty()) {
    return false;
  }
  *bytes = number << shift;
  return true;
}

bool ParseDuration(const std::string& text, uint64_t* nanoseconds) {
  uint64_t number = 0;
  std::string unit;
  if (!NumberAndUnit(text, &number, &unit)) return false;
  uint64_t scale = unit == "ns" ? 1 : unit == "us" ? 1'000 : unit == "ms" ? 1'000'000 : 0;
  *nanoseconds = number * scale;
  return scale != 0;
}

Settings Settings::From(const std::function<const char*(const char*)>& lookup) {
  Settings settings;
  auto read = [&](const char* name, const char* expected, auto parse) {
    const char* value = lookup(name);
    if (value == nullptr || *value == '\0') return;
    if (!parse(std::string(value))) {
      std::fprintf(stderr, "simcuda: %s=%s is not understood (expected %s); using the default\n",
                   name, value, expected);
    }
  };
  auto size_into = [](uint64_t* bytes) {
    return [bytes](const std::string& text) { return ParseSize(text, bytes); };
  };
  read("SIMCUDA_MEMORY", "a size such as 24G", size_into(&settings.memory));
  read("SIMCUDA_FOREIGN", "a size such as 2G", size_into(&settings.foreign));
  read("SIMCUDA_CONTEXT", "a size such as 500M", size_into(&settings.context));
  read("SIMCUDA_HANDLE", "a size such as 64K", size_into(&settings.handle));
  read("SIMCUDA_WORKSPACE", "a size such as 8M", size_into(&settings.workspace));
  read("SIMCUDA_DATA", "a size such as 1M", size_into(&settings.data));
  read("SIMCUDA_LAG", "a number of launches",
       [&](const std::string& text) { return ParseNumber(text, &settings.lag); });
  read("SIMCUDA_SCATTER", "a number",
       [&](const std::string& text) { return ParseNumber(text, &settings.scatter); });
  read("SIMCUDA_DEVICES", "1 to 8", [&](const std::string& text) {
    uint64_t count = 0;
    if (!ParseNumber(text, &count) || count < 1 || count > kMaxDevices) return false;
    settings.machine_devices = static_cast<int>(count);
    return true;
  });
  read("SIMCUDA_KERNEL_TIME", "a duration such as 50us",
       [&](const std::string& text) { return ParseDuration(text, &settings.kernel_time_ns); });
  read("SIMCUDA_BANDWIDTH", "bytes per second such as 20G", size_into(&settings.bandwidth));
  read("SIMCUDA_CLOCK", "real or virtual", [&](const std::string& text) {
    settings.virtual_clock = text == "virtual";
    return text == "real" || text == "virtual";
  });
  read("SIMCUDA_LOG_STREAMS", "0 or 1", [&](const std::string& text) {
    settings.log_streams = text == "1";
    return text == "0" || text == "1";
  });
  read("SIMCUDA_CUPTI", "on, off or refuse", [&](const std::string& text) {
    if (text == "on") settings.cupti = CuptiMode::kOn;
    if (text == "off") settings.cupti = CuptiMode::kOff;
    if (text == "refuse") settings.cupti = CuptiMode::kRefuse;
    return text == "on" || text == "off" || text == "refuse";
  });
  read("SIMCUDA_CUPTI_MEMORY", "a size such as 10M", size_into(&settings.cupti_memory));
  read("SIMCUDA_CUPTI_MULTI", "0 or 1", [&](const std::string& text) {
    settings.cupti_multi = text == "1";
    return text == "0" || text == "1";
  });
  read("SIMCUDA_CC", "a compute capability such as 8.0",
       [&](const std::string& text) { return ParseCapability(text, &settings); });
  read("SIMCUDA_LATENCY",
       "group=duration[,...] with groups alloc free host map copy launch sync other",
       [&](const std::string& text) { return ParseLatency(text, &settings); });
  read("SIMCUDA_FAIL", "name:nth[+][=code][,...] such as cuMemAlloc_v2:5=2",
       [&](const std::string& text) { return ParseFailures(text, &settings); });
  auto text = [&](const char* name) {
    const char* value = lookup(name);
    return std::string(value == nullptr ? "" : value);
  };
  settings.visible =
      CudaOrder(text("SIMCUDA_ORDER"), text("CUDA_DEVICE_ORDER"), settings.machine_devices);
  if (const char* list = lookup("CUDA_VISIBLE_DEVICES"))
    settings.visible = VisibleDevices(list, settings.visible);
  if (const char* shared = lookup("SIMCUDA_SHARED")) settings.shared = shared;
  if (const char* log = lookup("SIMCUDA_LOG")) settings.log = log;
  return settings;
}

Settings Settings::FromEnvironment() {
  return From([](const char* name) { return std::getenv(name); });
}

}  // namespace sim
