// gpumemtrace preload-path: prints the path of the library for LD_PRELOAD.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/install.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

absl::StatusOr<int> PrintPreloadPath() {
  absl::StatusOr<std::string> path = PreloadLibrary();
  if (!path.ok()) return path.status();
  fmt::print("{}\n", *path);
  return kDone;
}

}  // namespace

void AddPreloadPath(Program& program) {
  program.AddVerb("preload-path", "Print the path of the library for LD_PRELOAD",
                  [](const Terminal&) { return PrintPreloadPath(); });
}

}  // namespace gmt::cli
