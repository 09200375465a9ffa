#include "collector/sessions/libraries.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "collector/sessions/session_info.h"
#include "proto/gmt.pb.h"

namespace gmt::collector {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// Returns "12.4.127" for "libcudart.so.12.4.127"; empty without a version.
std::string VersionInName(const std::string& name, const std::string& prefix) {
  return StartsWith(name, prefix) ? name.substr(prefix.size()) : "";
}

// Returns the quoted text after `key`.
std::string QuotedAfter(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const size_t first = text.find_first_of("'\"\n", at + key.size());
  if (first == std::string::npos || text[first] == '\n') return "";
  const size_t last = text.find(text[first], first + 1);
  return last == std::string::npos ? "" : text.substr(first + 1, last - first - 1);
}

// Returns the version in the name of a wheel's metadata folder
// ("nvidia_cuda_runtime-13.0.96.dist-info") in a folder above `path`.
std::string WheelVersion(const std::string& root, const std::string& path,
                         const std::string& distribution) {
  const std::string prefix = distribution, suffix = ".dist-info";
  fs::path folder = fs::path(path).parent_path();
  for (int up = 0; up < 6 && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
    if (FileName(folder.string()) != "site-packages" &&
        FileName(folder.string()) != "dist-packages")
      continue;
    std::error_code error;
    for (fs::directory_iterator it(root + folder.string(), error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      const size_t dash = name.find('-');
      if (!StartsWith(name, prefix) || dash == std::string::npos ||
          name.size() < dash + suffix.size())
        continue;
      if (name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
      return name.substr(dash + 1, name.size() - suffix.size() - dash - 1);
    }
  }
  return "";
}

std::string DriverVersion(const std::string& path) {
  const std::string version = VersionInName(FileName(path), "libcuda.so.");
  return version.find('.') == std::string::npos
             ? ""
             : version;  // "1" is the interface version, not the driver's
}

std::string RuntimeVersion(const std::string& root, const std::string& path) {
  const std::string version = VersionInName(FileName(path), "libcudart.so.");
  if (version.empty() || std::count(version.begin(), version.end(), '.') == 2) return version;
  const std::string of_wheel = WheelVersion(root, path, "nvidia_cuda_runtime");
  return of_wheel.empty() ? version : of_wheel;
}

std::string TorchVersion(const std::string& root, const std::string& path) {
  if (!StartsWith(FileName(path), "libtorch") && !StartsWith(FileName(path), "libc10")) return "";
  const fs::path package = fs::path(path).parent_path().parent_path();
  const std::string version =
      QuotedAfter(ReadFile(absl::StrCat(root, package.string(), "/version.py")), "__version__ =");
  return version.empty() ? WheelVersion(root, path, "torch-") : version;
}

// Returns "3.11" for "libpython3.11.so.1.0" and "python3.11"; empty for other files.
std::string PythonMinor(const std::string& name) {
  const std::string version =
      StartsWith(name, "libpython3.") ? name.substr(9) : VersionInName(name, "python");
  if (!StartsWith(version, "3.")) return "";
  const size_t end = version.find_first_not_of("0123456789", 2);
  return version.substr(0, end);
}

std::string PythonVersion(const std::string& root, const std::string& path) {
  const std::string minor = PythonMinor(FileName(path));
  if (minor.empty()) return "";
  fs::path prefix = fs::path(path).parent_path();
  for (int up = 0; up < 3; ++up, prefix = prefix.parent_path()) {
    const std::string header =
        absl::StrCat(root, prefix.string(), "/include/python", minor, "/patchlevel.h");
    const std::string version = QuotedAfter(ReadFile(header), "PY_VERSION ");
    if (!version.empty()) return version;
  }
  return minor;
}

}  // namespace

std::vector<std::string> MappedFiles(const std::string& maps) {
  std::vector<std::string> files;
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t slash = line.find('/');
    if (slash == absl::string_view::npos) continue;
    std::string path(line.substr(slash));
    if (files.empty() || files.back() != path)
      files.push_back(std::move(path));  // a file's mappings are adjacent
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

Libraries FindLibraries(const std::vector<std::string>& mapped_files, const std::string& root) {
  Libraries found;
  // A longer version is more precise: libcudart.so.13 may be mapped beside libcudart.so.13.0.96.
  const auto add = [&](const char* name, const std::string& version) {
    if (version.size() > found[name].size()) found[name] = version;
  };
  for (const std::string& path : mapped_files) {
    add("cuda_driver", DriverVersion(path));
    add("cuda_runtime", RuntimeVersion(root, path));
    if (found["torch"].empty()) add("torch", TorchVersion(root, path));
    add("python", PythonVersion(root, path));
  }
  for (auto it = found.begin(); it != found.end();)
    it = it->second.empty() ? found.erase(it) : std::next(it);
  return found;
}

Libraries FindLibraries(uint64_t pid) {
  const std::string process = absl::StrCat("/proc/", pid);
  return FindLibraries(MappedFiles(ReadFile(process + "/maps")), process + "/root");
}

std::string MappedDriver(uint64_t pid) {
  const std::string maps = ReadFile(absl::StrCat("/proc/", pid, "/maps"));
  for (const std::string& path : MappedFiles(maps)) {
    if (StartsWith(FileName(path), "libcuda.so.")) return path;
  }
  return "";
}

void AddLibraries(const Libraries& libraries, gmt::Facts* facts) {
  for (const auto& [name, version] : libraries)
    AddSetting(facts->mutable_libraries(), name, version);
}

}  // namespace gmt::collector
