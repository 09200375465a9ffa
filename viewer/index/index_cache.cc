#include "viewer/index/index_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "format/crc32c.h"
#include "format/version.h"
#include "viewer/index/index_archive.h"
#include "viewer/index/index_parts.h"

namespace gmt::viewer {
namespace {

constexpr char kMagic[8] = {'G', 'M', 'T', 'V', 'I', 'E', 'W', '1'};
// The version of the parts and their encoding; any change must increment it.
constexpr uint32_t kVersion = 4;
constexpr uint64_t kEnds = 64 << 10;  // bytes checked at the beginning and end of a recording

struct Identity {
  uint64_t bytes = 0;
  int64_t changed_ns = 0;
  uint32_t ends_crc = 0;
  uint32_t tool_crc = 0;  // of gpumemtrace's version

  bool operator==(const Identity&) const = default;
};

struct Header {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t crc = 0;  // of the header with 0 in this field
  Identity recording;
  uint64_t data_bytes = 0;     // follows the header
  uint64_t outline_bytes = 0;  // follows the data
  uint64_t meta_bytes = 0;     // follows the outline
  uint32_t outline_crc = 0, meta_crc = 0;
};
static_assert(sizeof(Header) % 8 == 0);

uint32_t CrcOf(Header header) {
  header.crc = 0;
  return format::Crc32c({reinterpret_cast<const char*>(&header), sizeof header});
}

absl::Status Failed(const char* doing, const std::string& path) {
  const int error = errno;
  return absl::UnavailableError(absl::StrCat(path, ": ", doing, " failed: ", std::strerror(error)));
}

struct Fd {
  explicit Fd(int opened) : number(opened) {}
  ~Fd() {
    if (number >= 0) close(number);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  const int number;
};

std::string BytesAt(int fd, uint64_t at, uint64_t count) {
  std::string bytes(count, '\0');
  const ssize_t read = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
  bytes.resize(read < 0 ? 0 : static_cast<size_t>(read));
  return bytes;
}

std::optional<Identity> IdentityOf(const std::string& recording) {
  struct stat status;
  // Opening a pipe here would take it from its reader.
  if (stat(recording.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const Fd fd(open(recording.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.number < 0 || fstat(fd.number, &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  Identity identity;
  identity.bytes = static_cast<uint64_t>(status.st_size);
  identity.changed_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  const uint64_t end = identity.bytes - std::min(identity.bytes, kEnds);
  identity.ends_crc = format::Crc32c(BytesAt(fd.number, 0, kEnds) + BytesAt(fd.number, end, kEnds));
  identity.tool_crc = format::Crc32c(format::ToolVersion());
  return identity;
}

std::string CacheFolder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) {
    return caches + "/gpumemtrace/view";
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/gpumemtrace/view";
}

// Returns the possible paths of a cache: beside the recording, then in the user's cache directory.
std::vector<std::string> CachePaths(const std::string& recording) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(recording, error);
  if (error) return {};
  std::vector<std::string> paths = {path.parent_path() /
                                    absl::StrCat(".", path.filename().string(), ".view")};
  if (const std::string folder = CacheFolder(); !folder.empty()) {
    const std::string name = path.string();
    paths.push_back(absl::StrCat(folder, "/", absl::Hex(format::Crc32c(name), absl::kZeroPad8), "-",
                                 path.filename().string(), ".view"));
  }
  return paths;
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Removes files of writers that were killed, which exist only where O_TMPFILE is not supported. A
// live writer holds the lock of its file.
void RemoveLeft(const std::string& path) {
  const std::string begin = std::filesystem::path(path).filename().string() + ".";
  std::error_code error;
  for (std::filesystem::directory_iterator it(std::filesystem::path(path).parent_path(), error),
       end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!absl::StartsWith(name, begin) || !absl::EndsWith(name, ".tmp")) continue;
    const Fd fd(open(it->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd.number >= 0 && flock(fd.number, LOCK_EX | LOCK_NB) == 0) unlink(it->path().c_str());
  }
}

absl::Status WriteCache(const std::string& path, const std::vector<std::string_view>& pieces) {
  RemoveLeft(path);
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const std::string folder = std::filesystem::path(path).parent_path();
  const int unnamed = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  const Fd fd(unnamed >= 0 ? unnamed : open(temporary.c_str(), kNew, 0600));
  if (fd.number < 0) return Failed("create", temporary);
  flock(fd.number, LOCK_EX | LOCK_NB);
  absl::Cleanup remove = [&] { unlink(temporary.c_str()); };
  for (const std::string_view piece : pieces) {
    if (const absl::Status status = WriteAll(fd.number, piece, temporary); !status.ok()) {
      return status;
    }
  }
  const std::string here = absl::StrCat("/proc/self/fd/", fd.number);
  if (unnamed >= 0 &&
      linkat(AT_FDCWD, here.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return Failed("name", temporary);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return Failed("rename", temporary);
  std::move(remove).Cancel();
  return absl::OkStatus();
}

// A file mapped into memory, for the lifetime of this object.
class Mapping {
 public:
  static std::shared_ptr<const Mapping> Of(const std::string& path) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (fd.number < 0 || fstat(fd.number, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size < static_cast<off_t>(sizeof(Header))) {
      return nullptr;
    }
    const auto bytes = static_cast<size_t>(status.st_size);
    void* at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd.number, 0);
    return at == MAP_FAILED ? nullptr : std::make_shared<const Mapping>(at, bytes);
  }
  Mapping(void* at, size_t bytes) : at_(at), bytes_(bytes) {}
  ~Mapping() { munmap(at_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(at_), bytes_}; }

 private:
  void* const at_;
  const size_t bytes_;
};

CachedIndex LoadFrom(const std::string& path, const Identity& identity) {
  const std::shared_ptr<const Mapping> mapping = Mapping::Of(path);
  if (mapping == nullptr) return {};
  std::string_view rest = mapping->bytes();
  Header header;
  std::memcpy(&header, rest.data(), sizeof header);
  rest.remove_prefix(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.version != kVersion ||
      header.crc != CrcOf(header) || !(header.recording == identity)) {
    return {};
  }
  if (header.data_bytes % 8 != 0 || header.data_bytes > rest.size()) return {};
  const std::string_view data = rest.substr(0, header.data_bytes);
  rest.remove_prefix(header.data_bytes);
  if (header.outline_bytes > rest.size()) return {};
  const std::string_view outline = rest.substr(0, header.outline_bytes);
  const std::string_view meta = rest.substr(header.outline_bytes);
  if (meta.size() != header.meta_bytes || format::Crc32c(outline) != header.outline_crc ||
      format::Crc32c(meta) != header.meta_crc) {
    return {};
  }
  auto parts = std::make_unique<IndexParts>();
  IndexReader reader(outline, data, /*check_columns=*/true);
  reader.Item(*parts);
  if (!reader.is_whole() || !IsSane(*parts)) return {};
  parts->storage = mapping;
  return {ViewIndex::FromParts(std::move(parts)), std::string(meta)};
}

}  // namespace

CachedIndex LoadIndex(const std::string& recording) {
  const std::optional<Identity> identity = IdentityOf(recording);
  if (!identity) return {};
  for (const std::string& path : CachePaths(recording)) {
    if (CachedIndex cached = LoadFrom(path, *identity); cached.index != nullptr) return cached;
  }
  return {};
}

absl::Status SaveIndex(const std::string& recording, const ViewIndex& index,
                       std::string_view meta) {
  const std::optional<Identity> identity = IdentityOf(recording);
  if (!identity) return Failed("stat", recording);
  if (index.stage() != ViewIndex::Stage::kReady) {
    return absl::FailedPreconditionError("the index is not complete yet");
  }
  IndexWriter writer;
  // A writing archive visits members without changing them.
  writer.Item(const_cast<IndexParts&>(index.parts()));
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.recording = *identity;
  header.data_bytes = writer.data_bytes();
  header.outline_bytes = writer.outline().size();
  header.meta_bytes = meta.size();
  header.outline_crc = format::Crc32c(writer.outline());
  header.meta_crc = format::Crc32c(meta);
  header.crc = CrcOf(header);
  std::vector<std::string_view> pieces = {{reinterpret_cast<const char*>(&header), sizeof header}};
  pieces.insert(pieces.end(), writer.data().begin(), writer.data().end());
  pieces.push_back(writer.outline());
  pieces.push_back(meta);

  const std::vector<std::string> paths = CachePaths(recording);
  absl::Status status =
      absl::NotFoundError(absl::StrCat(recording, ": no directory for its index"));
  for (size_t i = 0; i < paths.size(); ++i) {
    std::error_code error;
    if (i > 0) {
      const std::filesystem::path folder = std::filesystem::path(paths[i]).parent_path();
      std::filesystem::create_directories(folder, error);
    }
    status = WriteCache(paths[i], pieces);
    if (status.ok()) break;
  }
  return status;
}

}  // namespace gmt::viewer
