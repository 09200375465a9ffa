#include "answers/ranks/digest_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "format/byte_source.h"
#include "format/crc32c.h"
#include "format/framing.h"
#include "format/printable.h"
#include "format/recording_writer.h"
#include "format/version.h"
#include "proto/digest.pb.h"

namespace gmt::answers {
namespace {

using analysis::Category;

constexpr absl::string_view kDigestSuffix = ".digest";
constexpr std::string_view kDigestSync = "GMTDIGST";
constexpr char kSyncTag = 0x09, kCrcTag = 0x7D;
constexpr uint64_t kEndBytes = 4096;
// No GPU, process or sum of a recording has more. Differences of such numbers cannot overflow.
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;

// ---- Encoding ----------------------------------------------------------------------------------

using NamedList = google::protobuf::RepeatedPtrField<NamedBytes>;
using PartList = google::protobuf::RepeatedPtrField<ByStep::Part>;

void PutNamed(std::string_view name, uint64_t bytes, NamedList* out) {
  NamedBytes* const named = out->Add();
  named->set_name(std::string(name));
  named->set_bytes(bytes);
}

void PutParts(const StepGroups::Parts& parts, PartList* out) {
  for (const auto& [name, bytes] : parts) {
    ByStep::Part* const part = out->Add();
    part->set_name(name);
    part->mutable_bytes()->Add(bytes.begin(), bytes.end());
  }
}

void PutSteps(const StepGroups& by_step, ByStep* out) {
  out->set_steps_per_group(by_step.steps_per_group);
  out->mutable_peak_bytes()->Add(by_step.peak_bytes.begin(), by_step.peak_bytes.end());
  PutParts(by_step.categories, out->mutable_categories());
  PutParts(by_step.stacks, out->mutable_stacks());
}

void PutRank(const RankDigest& digest, gmt::RankDigest* out) {
  if (digest.rank) out->set_rank(*digest.rank);
  out->set_host(digest.host);
  out->set_pid(digest.pid);
  out->set_device(digest.device);
  out->set_peak_bytes(digest.peak_bytes);
  out->set_peak_t_ns(digest.peak_t_ns);
  out->set_reserved_bytes(digest.reserved_bytes);
  for (size_t i = 0; i < analysis::kCategories; ++i) {
    if (digest.categories[i] > 0)
      PutNamed(NameOf(static_cast<Category>(i)), digest.categories[i], out->mutable_categories());
  }
  for (const auto& [label, bytes] : digest.stacks) PutNamed(label, bytes, out->mutable_stacks());
  out->set_other_stacks_bytes(digest.other_stacks_bytes);
  for (const auto& [name, bytes] : digest.libraries)
    PutNamed(name, bytes, out->mutable_libraries());
  if (digest.total_bytes) out->set_total_bytes(*digest.total_bytes);
  out->set_used_bytes(digest.used_bytes);
  for (const RankDigest::Process& process : digest.others) {
    gmt::RankDigest::Process* const other = out->add_others();
    other->set_pid(process.pid);
    other->set_bytes(process.bytes);
  }
  out->set_steps(digest.steps);
  out->set_retries(digest.retries);
  out->set_failures(digest.failures);
  if (digest.leak) {
    gmt::RankDigest::Leak* const leak = out->mutable_leak();
    leak->set_bytes_per_step(digest.leak->bytes_per_step);
    leak->set_place(digest.leak->place);
    leak->set_is_likely(digest.leak->is_likely);
    if (digest.leak->eta_ns) leak->set_eta_ns(*digest.leak->eta_ns);
  }
  PutSteps(digest.by_step, out->mutable_by_step());
  for (const std::string& note : digest.notes) out->add_notes(note);
  out->set_collectives_bytes(digest.collectives_bytes);
}

// ---- Decoding ----------------------------------------------------------------------------------

// Takes values out of a message, and notices those that no recording has.
class DigestTaker {
 public:
  bool Take(const gmt::RankDigest& in, RankDigest& digest) {
    if (in.has_rank()) digest.rank = in.rank();
    digest.host = in.host();
    digest.pid = in.pid();
    digest.device = in.device();
    digest.peak_bytes = Checked(in.peak_bytes());
    digest.peak_t_ns = in.peak_t_ns();
    digest.reserved_bytes = Checked(in.reserved_bytes());
    for (const NamedBytes& named : in.categories())
      digest.categories[IndexOf(named.name())] += Checked(named.bytes());
    TakeNames(in.stacks(), digest.stacks);
    digest.other_stacks_bytes = Checked(in.other_stacks_bytes());
    TakeNames(in.libraries(), digest.libraries);
    if (in.has_total_bytes()) digest.total_bytes = Checked(in.total_bytes());
    digest.used_bytes = Checked(in.used_bytes());
    for (const auto& process : in.others())
      digest.others.push_back({process.pid(), Checked(process.bytes())});
    digest.steps = Checked(in.steps());
    digest.retries = in.retries();
    digest.failures = in.failures();
    if (in.has_leak()) digest.leak = Leak(in.leak());
    TakeSteps(in.by_step(), digest.by_step);
    digest.notes.assign(in.notes().begin(), in.notes().end());
    digest.collectives_bytes = in.collectives_bytes();
    return is_right_;
  }

 private:
  uint64_t Checked(uint64_t bytes) {
    if (bytes <= kMaxBytes) return bytes;
    is_right_ = false;
    return 0;
  }

  static size_t IndexOf(const std::string& name) {
    for (size_t i = 0; i < analysis::kCategories; ++i) {
      if (NameOf(static_cast<Category>(i)) == name) return i;
    }
    return static_cast<size_t>(Category::kUnknown);
  }

  void TakeNames(const NamedList& in, std::map<std::string, uint64_t>& bytes) {
    for (const NamedBytes& named : in)
      bytes.emplace_hint(bytes.end(), named.name(), Checked(named.bytes()));
  }

  RankDigest::Leak Leak(const gmt::RankDigest::Leak& in) {
    RankDigest::Leak leak{in.bytes_per_step(), in.place(), in.is_likely(), {}};
    if (in.has_eta_ns()) leak.eta_ns = in.eta_ns();
    // The comparison is false for NaN.
    if (!(std::abs(leak.bytes_per_step) <= static_cast<double>(kMaxBytes))) is_right_ = false;
    return leak;
  }

  void TakeSteps(const ByStep& in, StepGroups& by_step) {
    by_step.steps_per_group = in.steps_per_group();
    if (!std::has_single_bit(in.steps_per_group()) || in.steps_per_group() > kMaxBytes ||
        static_cast<size_t>(in.peak_bytes_size()) > StepGroups::kMost) {
      is_right_ = false;
      return;
    }
    for (const uint64_t bytes : in.peak_bytes()) by_step.peak_bytes.push_back(Checked(bytes));
    TakeParts(in.categories(), in.peak_bytes_size(), by_step.categories);
    TakeParts(in.stacks(), in.peak_bytes_size(), by_step.stacks);
  }
  void TakeParts(const PartList& in, int groups, StepGroups::Parts& parts) {
    for (const ByStep::Part& part : in) {
      if (part.bytes_size() != groups) is_right_ = false;
      std::vector<uint64_t>& bytes = parts[part.name()];
      bytes.clear();
      for (const uint64_t each : part.bytes()) bytes.push_back(Checked(each));
    }
  }

  bool is_right_ = true;
};

bool StartsLikeDigest(std::string_view bytes) {
  return bytes.starts_with(kSyncTag) && bytes.substr(1).starts_with(kDigestSync);
}

// Returns the bytes before the checksum, or nothing if it is wrong.
std::optional<std::string_view> CheckedDigest(std::string_view bytes) {
  if (bytes.size() < format::kCrcBytes) return std::nullopt;
  const std::string_view covered = bytes.substr(0, bytes.size() - format::kCrcBytes);
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + covered.size() + 1, sizeof crc);
  if (bytes[covered.size()] != kCrcTag) return std::nullopt;
  if (format::Crc32c(covered) != crc) return std::nullopt;
  return covered;
}

// ---- Files -------------------------------------------------------------------------------------

absl::Status FailedWith(int error, absl::string_view path, absl::string_view doing) {
  const std::string message = absl::StrCat(path, ": ", doing, " failed: ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS)
    return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

// Fails with INVALID_ARGUMENT for what is not a regular file, which must not be opened.
absl::StatusOr<struct stat> StateOfFile(const std::string& path) {
  struct stat state = {};
  if (stat(path.c_str(), &state) != 0) return FailedWith(errno, path, "stat");
  if (S_ISREG(state.st_mode)) return state;
  return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
}

int64_t ModifiedNs(const struct stat& state) {
  return int64_t{state.st_mtim.tv_sec} * 1'000'000'000 + state.st_mtim.tv_nsec;
}

absl::StatusOr<StoredDigest> ReadStored(const std::string& path) {
  const auto state = StateOfFile(path);
  if (!state.ok()) return state.status();
  const auto source = format::OpenFile(path);
  if (!source.ok()) return source.status();
  std::string bytes;
  // One byte more than allowed shows that the file is too long.
  if (const absl::Status status = (*source)->Read(0, kMaxDigestBytes + 1, &bytes); !status.ok())
    return status;
  return DecodeDigest(bytes, path);
}

// A new file beside `path`, which gets its name when it is complete and is removed otherwise.
class NewDigest {
 public:
  explicit NewDigest(const std::string& path) : path_(path), name_(path + ".XXXXXX") {}
  ~NewDigest() {
    if (is_there_) unlink(name_.c_str());
  }

  absl::Status Write(absl::string_view bytes, mode_t mode) {
    const int fd = mkostemp(name_.data(), O_CLOEXEC);
    if (fd < 0) return FailedWith(errno, path_, "create");
    is_there_ = true;
    const auto sink = format::FileDescriptorSink(fd, path_);
    absl::Status status = sink->Append(bytes);
    if (status.ok()) status = sink->Sync();
    if (!status.ok()) return status;
    if (fchmod(fd, mode) != 0) return FailedWith(errno, path_, "chmod");
    if (std::rename(name_.c_str(), path_.c_str()) != 0) return FailedWith(errno, path_, "rename");
    is_there_ = false;
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  std::string name_;
  bool is_there_ = false;
};

// Returns an error if the file exists and is not a digest, whether of this or of another version.
absl::Status CheckReplaceable(const std::string& path) {
  struct stat state = {};
  if (lstat(path.c_str(), &state) != 0)
    return errno == ENOENT ? absl::OkStatus() : FailedWith(errno, path, "stat");
  std::string head;
  if (S_ISREG(state.st_mode)) {
    const auto source = format::OpenFile(path);
    if (!source.ok()) return source.status();
    if (const absl::Status status = (*source)->Read(0, 64, &head); !status.ok()) return status;
  }
  if (StartsLikeDigest(head)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, " is not a digest and is kept. Move it away to have one written"));
}

}  // namespace

std::string DigestPathOf(absl::string_view recording) {
  return absl::StrCat(recording, kDigestSuffix);
}

std::optional<std::string> RecordingOfDigest(absl::string_view path) {
  if (!absl::ConsumeSuffix(&path, kDigestSuffix) || path.empty()) return std::nullopt;
  return std::string(path);
}

absl::StatusOr<RecordingState> StateOfRecording(const std::string& path) {
  const auto file = StateOfFile(path);
  if (!file.ok()) return file.status();
  const auto source = format::OpenFile(path);
  if (!source.ok()) return source.status();
  RecordingState state{static_cast<uint64_t>(file->st_size), ModifiedNs(*file), 0};
  std::string ends, tail;
  absl::Status status = (*source)->Read(0, kEndBytes, &ends);
  if (status.ok() && !ends.starts_with(format::kFileMagic))
    status = absl::InvalidArgumentError(absl::StrCat(path, " is not a .gmt recording"));
  if (status.ok()) {
    status = (*source)->Read(state.bytes - std::min(state.bytes, kEndBytes), kEndBytes, &tail);
  }
  if (!status.ok()) return status;
  state.ends_crc32c = format::Crc32c(ends + tail);
  return state;
}

std::string EncodeDigest(const RankDigest& digest, const RecordingState& state) {
  DigestFile file;
  file.set_magic(format::SyncWord(kDigestSync));
  file.set_version(kDigestVersion);
  file.set_tool_version(std::string(format::ToolVersion()));
  file.mutable_source()->set_bytes(state.bytes);
  file.mutable_source()->set_modified_ns(state.modified_ns);
  file.mutable_source()->set_ends_crc32c(state.ends_crc32c);
  PutRank(digest, file.mutable_rank());
  std::string bytes = file.SerializeAsString();
  const uint32_t crc = format::Crc32c(bytes);
  bytes.push_back(kCrcTag);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  return bytes;
}

absl::StatusOr<StoredDigest> DecodeDigest(std::string_view bytes, const std::string& name) {
  if (!StartsLikeDigest(bytes))
    return absl::InvalidArgumentError(absl::StrCat(name, " is not a digest of a recording"));
  const auto damaged = [name](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(name, ": this digest is damaged (", what, ")"));
  };
  if (bytes.size() > kMaxDigestBytes) return damaged("too long");
  const auto covered = CheckedDigest(bytes);
  if (!covered) return damaged("CRC32C");
  DigestFile file;
  if (!format::ParseBytes(*covered, &file)) return damaged("message");
  if (file.version() != kDigestVersion) {
    return absl::UnimplementedError(absl::StrCat(
        name, ": this digest has version ", file.version(), ", written by gpumemtrace ",
        format::Printable(file.tool_version()), "; this release uses version ", kDigestVersion));
  }
  StoredDigest stored;
  if (!DigestTaker().Take(file.rank(), stored.digest)) return damaged("values");
  stored.state = {file.source().bytes(), file.source().modified_ns(), file.source().ends_crc32c()};
  return stored;
}

absl::StatusOr<RankDigest> ReadDigestOf(const std::string& recording) {
  const auto file = StateOfFile(recording);
  if (!file.ok()) return absl::NotFoundError(file.status().message());
  const std::string path = DigestPathOf(recording);
  auto stored = ReadStored(path);
  if (!stored.ok()) return stored.status();
  bool is_same = stored->state.bytes == static_cast<uint64_t>(file->st_size);
  if (is_same && stored->state.modified_ns != ModifiedNs(*file)) {
    const auto state = StateOfRecording(recording);
    is_same = state.ok() && state->ends_crc32c == stored->state.ends_crc32c;
  }
  if (!is_same)
    return absl::FailedPreconditionError(absl::StrCat(path, " is the digest of another recording"));
  stored->digest.file = recording;
  return std::move(stored->digest);
}

absl::StatusOr<RankDigest> ReadDigest(const std::string& path) {
  auto stored = ReadStored(path);
  if (!stored.ok()) return stored.status();
  stored->digest.file = path;
  return std::move(stored->digest);
}

absl::Status WriteDigestOf(const std::string& recording, const RankDigest& digest,
                           const RecordingState& state) {
  const auto file = StateOfFile(recording);
  if (!file.ok()) return file.status();
  const std::string path = DigestPathOf(recording);
  if (absl::Status status = CheckReplaceable(path); !status.ok()) return status;
  // Everyone who may read the recording may read its digest.
  return NewDigest(path).Write(EncodeDigest(digest, state), file->st_mode & 0666);
}

}  // namespace gmt::answers
