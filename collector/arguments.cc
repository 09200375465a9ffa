#include "collector/arguments.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gmt::collector {

absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--once") {
      arguments.once = true;
      continue;
    }
    int* descriptor = name == "--target-fd"    ? &arguments.target_fd
                      : name == "--output-fd"  ? &arguments.output_fd
                      : name == "--session-fd" ? &arguments.session_fd
                                               : nullptr;
    if (descriptor != nullptr) {
      if (i + 1 == argc || !absl::SimpleAtoi(argv[++i], descriptor))
        return absl::InvalidArgumentError(absl::StrCat(name, " needs a descriptor number"));
      continue;
    }
    std::string* value = name == "--session"  ? &arguments.session
                         : name == "--output" ? &arguments.output
                         : name == "--listen" ? &arguments.listen
                                              : nullptr;
    if (value == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", name));
    if (i + 1 == argc || *argv[i + 1] == '\0')
      return absl::InvalidArgumentError(
          absl::StrCat(name, name == "--listen" ? " needs an address, such as 127.0.0.1:9400"
                                                : " needs a file"));
    *value = argv[++i];
  }
  if (arguments.session.empty() != arguments.output.empty()) {
    return absl::InvalidArgumentError("--session and --output must be given together");
  }
  return arguments;
}

}  // namespace gmt::collector
