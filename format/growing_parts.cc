#include "format/growing_parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/parts.h"
#include "format/read_at.h"

namespace gmt::format {
namespace {

absl::Status Failed(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, " cannot be read: ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

}  // namespace

class GrowingParts::File : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return Failed(path, errno);
    auto file = std::unique_ptr<File>(new File(fd, path));
    struct stat info = {};
    if (fstat(fd, &info) != 0) return Failed(path, errno);
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is not a regular file and cannot be followed"));
    }
    file->device_ = info.st_dev;
    file->inode_ = info.st_ino;
    file->size_ = static_cast<uint64_t>(info.st_size);
    return file;
  }
  ~File() override { close(fd_); }

  uint64_t size() const override { return size_; }
  absl::Status Read(uint64_t offset, uint64_t count, std::string* out) override {
    const int error = ReadAt(fd_, size_, offset, count, out);
    return error == 0 ? absl::OkStatus() : Failed(path_, error);
  }

  // The size of a truncated file is kept here, so that offsets stay valid.
  absl::Status Refresh() {
    struct stat info = {};
    if (fstat(fd_, &info) != 0) return Failed(path_, errno);
    const auto size = static_cast<uint64_t>(info.st_size);
    if (size < size_) return absl::DataLossError(absl::StrCat(path_, " has become shorter"));
    size_ = size;
    return absl::OkStatus();
  }
  bool IsAt(const struct stat& info) const {
    return info.st_dev == device_ && info.st_ino == inode_;
  }

 private:
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  const int fd_;
  const std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t size_ = 0;
};

GrowingParts::GrowingParts(std::string path) : path_(std::move(path)) {}
GrowingParts::~GrowingParts() = default;

absl::StatusOr<std::unique_ptr<GrowingParts>> GrowingParts::Open(const std::string& path) {
  auto newest = File::Open(path);
  if (!newest.ok()) return newest.status();
  auto parts = std::unique_ptr<GrowingParts>(new GrowingParts(path));
  parts->last_header_ = FirstHeader(newest->get());
  parts->files_ = parts->PartsSince(*std::move(newest));
  return parts;
}

// Returns the older parts that lead to `newest`, oldest first, and `newest`.
std::deque<std::unique_ptr<GrowingParts::File>> GrowingParts::PartsSince(
    std::unique_ptr<File> newest) const {
  std::deque<std::unique_ptr<File>> files;
  Header header = FirstHeader(newest.get());
  files.push_back(std::move(newest));
  while (header.part() > 0) {
    auto older = File::Open(PartPath(path_, header.part() - 1));
    if (!older.ok()) break;
    Header before = FirstHeader(older->get());
    if (!IsNextPart(before, header)) break;
    files.push_front(*std::move(older));
    header = std::move(before);
  }
  return files;
}

uint64_t GrowingParts::size() const {
  uint64_t size = begin_;
  for (const auto& file : files_) size += file->size();
  return size;
}

absl::Status GrowingParts::Read(uint64_t offset, uint64_t count, std::string* out) {
  out->clear();
  std::string piece;
  uint64_t begin = begin_;
  for (const auto& file : files_) {
    const uint64_t end = begin + file->size();
    if (offset >= begin && offset < end && out->size() < count) {
      const uint64_t here = std::min(count - out->size(), end - offset);
      if (absl::Status status = file->Read(offset - begin, here, &piece); !status.ok())
        return status;
      out->append(piece);
      if (piece.size() < here) break;  // it was truncated: later data does not continue it
      offset = end;
    }
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status GrowingParts::Refresh() {
  struct stat info = {};
  // Check the name before the newest file: a part is complete when the next one takes over its
  // name.
  if (stat(path_.c_str(), &info) != 0) return Failed(path_, errno);
  if (absl::Status status = files_.back()->Refresh(); !status.ok()) return status;
  if (last_header_.ByteSizeLong() == 0) last_header_ = FirstHeader(files_.back().get());
  if (files_.back()->IsAt(info)) return absl::OkStatus();
  auto newest = File::Open(path_);
  if (!newest.ok()) return newest.status();
  return Append(*std::move(newest));
}

// Several parts may have been replaced in the meantime; all of them are needed.
absl::Status GrowingParts::Append(std::unique_ptr<File> newest) {
  const Header header = FirstHeader(newest.get());
  std::deque<std::unique_ptr<File>> files = PartsSince(std::move(newest));
  while (!files.empty() && !IsNextPart(last_header_, FirstHeader(files.front().get()))) {
    files.pop_front();
  }
  if (files.empty()) {
    return absl::DataLossError(absl::StrCat(path_, " is another recording than before"));
  }
  for (auto& file : files) files_.push_back(std::move(file));
  last_header_ = header;
  return absl::OkStatus();
}

void GrowingParts::Forget(uint64_t offset) {
  while (files_.size() > 1 && begin_ + files_.front()->size() <= offset) {
    begin_ += files_.front()->size();
    files_.pop_front();
  }
}

}  // namespace gmt::format
