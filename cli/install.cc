#include "cli/install.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLibrary[] = "libgpumemtrace.so";
// Where Debian's loader looks for libraries.
constexpr char kMultiarch[] = "x86_64-linux-gnu";

std::vector<fs::path> PlacesOfLibrary() {
  if (const char* override = std::getenv("GPUMEMTRACE_LIBRARY");
      override != nullptr && *override != '\0') {
    return {fs::path(override)};
  }
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  const fs::path lib = folder.parent_path() / "lib";
  return {lib / kLibrary, lib / kMultiarch / kLibrary, lib / "gpumemtrace" / kLibrary,
          folder / kLibrary};
}

}  // namespace

absl::StatusOr<std::string> PreloadLibrary() {
  std::vector<std::string> tried;
  for (const fs::path& place : PlacesOfLibrary()) {
    std::error_code error;
    const fs::path absolute = fs::canonical(place, error);
    if (!error && fs::is_regular_file(absolute, error)) return absolute.string();
    tried.push_back(place.string());
  }
  return absl::NotFoundError(
      absl::StrCat(kLibrary, " was not found; looked for ", absl::StrJoin(tried, ", "),
                   ". Name it with: GPUMEMTRACE_LIBRARY=/path/to/", kLibrary));
}

absl::StatusOr<std::string> CollectorProgram() {
  constexpr char kName[] = "gpumemtrace-collector";
  std::vector<fs::path> places;
  if (const char* own = std::getenv("GPUMEMTRACE_COLLECTOR"); own != nullptr && *own != '\0') {
    places = {own};
  } else {
    absl::StatusOr<std::string> library = PreloadLibrary();
    if (!library.ok()) return library.status();
    const fs::path folder = fs::path(*library).parent_path();
    places = {folder / kName, folder.parent_path() / "bin" / kName,
              folder.parent_path().parent_path() / "bin" / kName,
              folder.parent_path() / "libexec" / kName};
  }
  for (const fs::path& place : places) {
    if (access(place.c_str(), X_OK) == 0) return place.string();
  }
  std::vector<std::string> tried(places.begin(), places.end());
  return absl::NotFoundError(absl::StrCat(
      kName, " was not found or cannot be run; looked for ", absl::StrJoin(tried, ", "),
      ". Name it with: GPUMEMTRACE_COLLECTOR=/path/to/", kName));
}

}  // namespace gmt::cli
