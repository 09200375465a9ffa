#include "collector/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gmt::collector {

OutputFile::OutputFile(int fd)
    : OutputFile([fd](const char* bytes, size_t size) { return write(fd, bytes, size); }) {}

absl::Status OutputFile::Append(absl::string_view bytes) {
  const bool was_stalled = stalled();
  kept_.append(bytes.data(), bytes.size());
  if (!was_stalled && !Retry().ok()) ++stalls_;
  return absl::OkStatus();
}

absl::Status OutputFile::Retry() {
  size_t done = 0;
  int error = 0;
  while (done < kept_.size() && error == 0) {
    const ssize_t n = write_(kept_.data() + done, kept_.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    if (n <= 0 && !(n < 0 && errno == EINTR)) error = n == 0 ? ENOSPC : errno;
  }
  kept_.erase(0, done);
  if (error == 0) return absl::OkStatus();
  const std::string message =
      absl::StrCat("the recording cannot be written: ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::UnavailableError(message);
}

}  // namespace gmt::collector
