#include "tests/simcuda/nvml/script.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/simcuda/settings.h"

namespace sim {
namespace {

bool TakeSize(const std::string& text, std::optional<uint64_t>* bytes) {
  uint64_t value = 0;
  if (!ParseSize(text, &value)) return false;
  *bytes = value;
  return true;
}

bool TakeProcess(const std::string& text, std::vector<NvmlScript::Process>* processes) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  NvmlScript::Process process;
  process.pid = static_cast<unsigned int>(std::strtoul(text.c_str(), nullptr, 10));
  const std::string bytes = text.substr(colon + 1);
  if (bytes != "-" && !TakeSize(bytes, &process.bytes)) return false;
  processes->push_back(process);
  return process.pid != 0;
}

}  // namespace

NvmlScript::NvmlScript(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) std::fprintf(stderr, "simcuda: SIMCUDA_NVML=%s cannot be read\n", path.c_str());
  Parse(text.str());
}

void NvmlScript::Parse(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (!words.empty() && !ParseLine(words))
      std::fprintf(stderr, "simcuda: SIMCUDA_NVML: not understood: %s\n", line.c_str());
  }
}

bool NvmlScript::ParseLine(const std::vector<std::string>& words) {
  if (words.size() < 3) return false;
  if (words[0] == "device") return ParseDevice(words);
  if (words[0] == "error") return ParseError(words);
  return words[0] == "latency" && words.size() == 3 &&
         ParseDuration(words[2], &latencies_[words[1]]);
}

bool NvmlScript::ParseDevice(const std::vector<std::string>& words) {
  Line line;
  line.key = words[1];
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return false;
    const std::string name = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    bool taken = false;
    if (name == "total") taken = TakeSize(value, &line.values.total);
    if (name == "used") taken = TakeSize(value, &line.values.used);
    if (name == "reserved") taken = TakeSize(value, &line.values.reserved);
    if (name == "process") taken = TakeProcess(value, &line.values.processes);
    if (name == "from") taken = (line.from = std::strtoull(value.c_str(), nullptr, 10)) > 0;
    if (name == "uuid") {
      instances_.push_back({std::atoi(line.key.c_str()), value, line.key});
      taken = line.key.find('/') != std::string::npos;
    }
    if (!taken) return false;
  }
  lines_.push_back(line);
  return true;
}

bool NvmlScript::ParseError(const std::vector<std::string>& words) {
  Error& error = errors_[words[1]];
  error.code = std::atoi(words[2].c_str());
  if (words.size() == 4 && words[3].rfind("times=", 0) == 0)
    error.times = std::strtoull(words[3].c_str() + 6, nullptr, 10);
  return error.code > 0 && words.size() <= 4;
}

NvmlScript::Values NvmlScript::At(const std::string& key, uint64_t query) const {
  Values all;
  for (const Line& line : lines_) {
    if (line.key != key || line.from > query) continue;
    const Values& values = line.values;
    if (values.total) all.total = values.total;
    if (values.used) all.used = values.used;
    if (values.reserved) all.reserved = values.reserved;
    all.processes.insert(all.processes.end(), values.processes.begin(), values.processes.end());
  }
  return all;
}

int NvmlScript::ErrorOf(const std::string& call) {
  const auto found = errors_.find(call);
  if (found == errors_.end()) return 0;
  return ++found->second.calls <= found->second.times ? found->second.code : 0;
}

uint64_t NvmlScript::LatencyNs(const std::string& call) const {
  auto found = latencies_.find(call);
  if (found == latencies_.end()) found = latencies_.find("*");
  return found == latencies_.end() ? 0 : found->second;
}

}  // namespace sim
