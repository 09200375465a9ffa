#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::cli {

namespace fs = std::filesystem;

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder"));
  if (fs::exists(status) && !fs::is_regular_file(status)) return OutputFile(path, path);
  if (fs::exists(status) && !force) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists already. Overwrite it with: --force"));
  }
  return OutputFile(path, absl::StrCat(path, ".", getpid(), ".part"));
}

OutputFile::OutputFile(std::string path, std::string written)
    : path_(std::move(path)), written_(std::move(written)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), written_(std::exchange(other.written_, {})) {}

OutputFile::~OutputFile() {
  if (!written_.empty() && written_ != path_) std::remove(written_.c_str());
}

absl::Status OutputFile::Commit() {
  const std::string written = std::exchange(written_, {});
  if (written == path_ || std::rename(written.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  std::remove(written.c_str());
  return absl::UnavailableError(absl::StrCat(path_, ": rename failed: ", std::strerror(error)));
}

}  // namespace gmt::cli
