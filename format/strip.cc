#include "format/strip.h"

#include <algorithm>
#include <cctype>

#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

constexpr std::string_view kSystemRoots[] = {"/usr/", "/lib/", "/lib64/"};
constexpr std::string_view kBeforePath = " =:,;'\"(";
constexpr std::string_view kBehindPath = " =:,;'\")";

bool BeginsWith(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Whether it is a directory of the standard library, such as "python3.11".
bool IsPythonDirectory(std::string_view name) {
  constexpr std::string_view kPython = "python3.";
  if (!BeginsWith(name, kPython) || name.size() == kPython.size()) return false;
  const std::string_view minor = name.substr(kPython.size());
  return std::all_of(minor.begin(), minor.end(), [](unsigned char c) { return std::isdigit(c); });
}

bool IsPackagesDirectory(std::string_view name) {
  return name == "site-packages" || name == "dist-packages";
}

// Returns the path from its last directory that `is_directory` accepts, or "" if there is none.
template <typename IsFolder>
std::string_view FromDirectory(std::string_view path, IsFolder is_directory) {
  for (size_t end = path.rfind('/'); end != std::string_view::npos && end > 0;) {
    const size_t begin = path.rfind('/', end - 1);
    if (begin == std::string_view::npos) return {};
    if (is_directory(path.substr(begin + 1, end - begin - 1))) return path.substr(begin + 1);
    end = begin;
  }
  return {};
}

void StripField(std::string* text, std::string_view working_directory) {
  *text = StripPathsIn(*text, working_directory);
}

void StripSettings(google::protobuf::RepeatedPtrField<gmt::Setting>* settings,
                   std::string_view working_directory) {
  for (gmt::Setting& setting : *settings) StripField(setting.mutable_value(), working_directory);
}

void StripFacts(Strip* strip, gmt::Facts* facts) {
  if (strip->working_directory.empty()) strip->working_directory = facts->working_directory();
  const std::string_view from = strip->working_directory;
  if (strip->args && facts->argv_size() > 1)
    facts->mutable_argv()->DeleteSubrange(1, facts->argv_size() - 1);
  if (!strip->paths) return;
  for (std::string& word : *facts->mutable_argv()) StripField(&word, from);
  if (!facts->executable().empty()) StripField(facts->mutable_executable(), from);
  facts->clear_working_directory();
  StripSettings(facts->mutable_settings(), from);
  StripSettings(facts->mutable_libraries(), from);
  StripSettings(facts->mutable_sources(), from);
  StripSettings(facts->mutable_options(), from);
}

void StripDefinitions(const Strip& strip, gmt::Definitions* definitions) {
  if (!strip.paths) return;
  const std::string_view from = strip.working_directory;
  for (std::string& text : *definitions->mutable_strings()) {
    // A function name may contain a path, but only a file name begins with one.
    if (!text.empty() && text.front() == '/') text = StripPath(text, from);
  }
  for (gmt::Module& module : *definitions->mutable_modules())
    module.set_path(StripPath(module.path(), from));
}

}  // namespace

std::string StripPath(std::string_view path, std::string_view working_directory) {
  if (path.empty() || path.front() != '/') return std::string(path);
  if (const auto kept = FromDirectory(path, IsPackagesDirectory); !kept.empty())
    return std::string(kept);
  for (const std::string_view root : kSystemRoots) {
    if (BeginsWith(path, root)) return std::string(path);
  }
  if (const auto kept = FromDirectory(path, IsPythonDirectory); !kept.empty())
    return std::string(kept);
  while (working_directory.size() > 1 && working_directory.back() == '/')
    working_directory.remove_suffix(1);
  const bool is_below = working_directory.size() > 1 && BeginsWith(path, working_directory) &&
                        path.size() > working_directory.size() + 1 &&
                        path[working_directory.size()] == '/';
  if (is_below) return std::string(path.substr(working_directory.size() + 1));
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::string(name.empty() ? path : name);
}

std::string StripPathsIn(std::string_view text, std::string_view working_directory) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const bool begins =
        text[i] == '/' && (i == 0 || kBeforePath.find(text[i - 1]) != kBeforePath.npos);
    if (!begins) {
      result += text[i++];
      continue;
    }
    const size_t end = std::min(text.find_first_of(kBehindPath, i), text.size());
    result += StripPath(text.substr(i, end - i), working_directory);
    i = end;
  }
  return result;
}

bool StripBody(Strip* strip, gmt::Body* body) {
  if (body->has_facts()) StripFacts(strip, body->mutable_facts());
  if (body->has_definitions()) StripDefinitions(*strip, body->mutable_definitions());
  return body->has_facts() || body->has_definitions();
}

}  // namespace gmt::format
