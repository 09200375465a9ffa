#include "analysis/diff/differences.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::analysis {
namespace {

std::string Changed(const std::string& what, const std::string& from, const std::string& to) {
  if (from.empty()) return absl::StrCat("Added: ", what, " ", to);
  if (to.empty()) return absl::StrCat("Removed: ", what, " ", from);
  return absl::StrCat("Changed: ", what, " ", from, " -> ", to);
}

void AddValues(const std::vector<NamedText>& base, const std::vector<NamedText>& changed,
               std::vector<std::string>& differences) {
  if (base.empty() || changed.empty()) return;
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const NamedText& setting : base) values[setting.name].first = setting.text;
  for (const NamedText& setting : changed) values[setting.name].second = setting.text;
  for (const auto& [name, both] : values) {
    if (both.first != both.second) differences.push_back(Changed(name, both.first, both.second));
  }
}

std::string GpuText(const GpuFacts& gpu) {
  std::string text = gpu.name;
  if (gpu.total_bytes > 0) absl::StrAppend(&text, " (", gpu.total_bytes >> 20, " MiB)");
  return text;
}

void AddDevices(const Trace& base, const Trace& changed, std::vector<std::string>& differences) {
  for (const GpuFacts& gpu : base.devices) {
    const auto same = std::find_if(changed.devices.begin(), changed.devices.end(),
                                   [&](const GpuFacts& other) { return other.index == gpu.index; });
    if (same == changed.devices.end() || GpuText(gpu) == GpuText(*same)) continue;
    differences.push_back(Changed(absl::StrCat("GPU ", gpu.index), GpuText(gpu), GpuText(*same)));
  }
}

// Removes the words that both have at the beginning and at the end.
void AddCommand(std::vector<std::string> base, std::vector<std::string> changed,
                std::vector<std::string>& differences) {
  if (base.empty() || changed.empty() || base == changed) return;
  const auto [a, b] = std::mismatch(base.begin(), base.end(), changed.begin(), changed.end());
  auto begin = a - base.begin();
  if (begin > 0 && base[static_cast<size_t>(begin) - 1].starts_with('-'))
    --begin;  // keep the option of a changed value
  base.erase(base.begin(), base.begin() + begin);
  changed.erase(changed.begin(), changed.begin() + begin);
  while (!base.empty() && !changed.empty() && base.back() == changed.back()) {
    base.pop_back();
    changed.pop_back();
  }
  const std::string from = absl::StrJoin(base, " "), to = absl::StrJoin(changed, " ");
  differences.push_back(from.empty() ? absl::StrCat("Added: ", to)
                        : to.empty() ? absl::StrCat("Removed: ", from)
                                     : Changed("command", from, to));
}

void AddLoop(const Cycles& base, const Cycles& changed, std::vector<std::string>& differences) {
  if (base.cycles.empty() || changed.cycles.empty()) return;
  if (base.source != changed.source) {
    differences.push_back(Changed("steps determined by", base.source, changed.source));
  }
  if (base.cycles.size() != changed.cycles.size()) {
    differences.push_back(
        Changed("steps", absl::StrCat(base.cycles.size()), absl::StrCat(changed.cycles.size())));
  }
}

void AddRanks(const Trace& base, const Trace& changed, std::vector<std::string>& differences) {
  const auto add = [&](const char* what, std::optional<int32_t> a, std::optional<int32_t> b) {
    if (!a || !b || *a == *b) return;
    differences.push_back(Changed(what, absl::StrCat(*a), absl::StrCat(*b)));
  };
  add("rank", base.rank, changed.rank);
  add("world size", base.world_size, changed.world_size);
}

}  // namespace

std::vector<std::string> DifferencesOf(const Examination& base, const Examination& changed) {
  const Trace &a = base.trace(), &b = changed.trace();
  std::vector<std::string> differences;
  AddCommand(a.argv, b.argv, differences);
  AddValues(a.settings, b.settings, differences);
  AddValues(a.libraries, b.libraries, differences);
  AddDevices(a, b, differences);
  AddRanks(a, b, differences);
  AddLoop(base.cycles(), changed.cycles(), differences);
  return differences;
}

}  // namespace gmt::analysis
