#include "interop/jax_profile/jax_profile.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "format/live_columns.h"
#include "format/printable.h"
#include "format/units.h"
#include "interop/pickle/byte_stream.h"
#include "proto/gmt.pb.h"
#include "proto/pprof.pb.h"

namespace gmt::interop {
namespace {

using absl::string_view;
using format::Event;
using format::FrameInfo;

constexpr char kJaxHeap[] = "jax";
// A profile has a sample of about 150 bytes for each stack and size. The limits also keep the
// recording within those of its format.
constexpr uint64_t kMaxProfileBytes = 16 * kMiB;
constexpr int64_t kMaxAllocations = 1'000'000;
constexpr size_t kMaxFrames = 4'000'000;  // in all samples together

absl::StatusOr<std::string> Unpacked(const std::shared_ptr<format::ByteSource>& file,
                                     string_view name) {
  std::string bytes;
  const auto stream = StreamOf(file, name);
  for (;;) {
    const absl::StatusOr<string_view> piece = stream->Next();
    if (!piece.ok()) return piece.status();
    if (piece->empty()) return bytes;
    absl::StrAppend(&bytes, *piece);
    if (bytes.size() > kMaxProfileBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(name, ": the profile has more than ", kMaxProfileBytes / kMiB, " MiB"));
    }
  }
}

// What the samples of a profile refer to.
class ProfileTables {
 public:
  ProfileTables(const pprof::Profile& profile, format::DefinitionsBuilder& definitions)
      : profile_(profile), definitions_(definitions) {
    for (const pprof::Function& function : profile.function())
      functions_[function.id()] = &function;
    for (const pprof::Location& location : profile.location())
      locations_[location.id()] = FramesOf(location);
  }

  // Returns "" for an index outside the table.
  string_view Text(int64_t index) const {
    return index >= 0 && index < profile_.string_table_size()
               ? string_view(profile_.string_table(static_cast<int>(index)))
               : string_view("");  // with an address, which absl::StrJoin() needs
  }
  uint32_t StringOf(int64_t index) {
    const auto [id, is_new] = strings_.try_emplace(index, 0);
    if (is_new) id->second = definitions_.InternString(std::string(Text(index)));
    return id->second;
  }

  // Returns false if all samples together have too many frames.
  bool StackOf(const pprof::Sample& sample, uint32_t* stack) {
    std::vector<uint32_t> frames;
    for (const uint64_t id : sample.location_id()) {
      const auto location = locations_.find(id);
      if (location == locations_.end()) continue;
      const std::vector<uint32_t>& added = location->second;
      if (added.size() > kMaxFrames - frames_) return false;
      frames_ += added.size();
      frames.insert(frames.end(), added.begin(), added.end());
    }
    *stack = definitions_.InternStack(frames, 0);
    return true;
  }

 private:
  // The lines of a location are inlined calls, innermost first.
  std::vector<uint32_t> FramesOf(const pprof::Location& location) {
    std::vector<uint32_t> frames;
    for (const pprof::Line& line : location.line()) {
      const auto function = functions_.find(line.function_id());
      if (function == functions_.end()) continue;
      FrameInfo frame;
      frame.language = format::Language::kPython;
      frame.function = StringOf(function->second->name());
      frame.file = StringOf(function->second->filename());
      frame.flags = format::kFrameHasFunction;
      if (frame.file != 0) frame.flags |= format::kFrameHasFile;
      if (line.line() > 0 && line.line() <= UINT32_MAX) {
        frame.line = static_cast<uint32_t>(line.line());
        frame.flags |= format::kFrameHasLine;
      }
      frames.push_back(definitions_.InternFrame(frame));
    }
    return frames;
  }

  const pprof::Profile& profile_;
  format::DefinitionsBuilder& definitions_;
  absl::flat_hash_map<uint64_t, const pprof::Function*> functions_;
  absl::flat_hash_map<uint64_t, std::vector<uint32_t>> locations_;
  absl::flat_hash_map<int64_t, uint32_t> strings_;  // index in the table -> id
  size_t frames_ = 0;
};

// Returns an error if the values of each sample are not JAX's.
absl::Status CheckTypes(const pprof::Profile& profile, const ProfileTables& tables,
                        string_view name) {
  std::vector<string_view> types;
  for (const pprof::ValueType& type : profile.sample_type())
    types.push_back(tables.Text(type.type()));
  if (types == std::vector<string_view>{"allocations", "space"}) return absl::OkStatus();
  constexpr size_t kTextShown = 100;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is a profile of pprof with ",
                   format::Printable(absl::StrJoin(types, ", ").substr(0, kTextShown)),
                   "; only JAX's device memory profiles, with allocations and space, can be read"));
}

class LiveSet {
 public:
  LiveSet(ProfileTables* tables, uint32_t heap)
      : tables_(*tables), columns_(snapshot_.mutable_live()) {
    like_.kind = ALLOC;
    like_.memory = BLOCK;
    like_.heap = heap;
  }

  // Returns what is wrong with the sample, "" if nothing is.
  std::string Add(const pprof::Sample& sample) {
    if (sample.value_size() != 2 || sample.value(0) < 0 || sample.value(1) < 0)
      return "does not have two values";
    Event event = like_;
    event.present = format::kHasSize;
    string_view device;
    for (const pprof::Label& label : sample.label()) {
      const string_view key = tables_.Text(label.key());
      if (key == "device") device = tables_.Text(label.str());
      if (key == "kind") event.name = tables_.StringOf(label.str());
    }
    const int64_t count = sample.value(0);
    if (sample.value(1) == 0) return "";  // an executable of unknown size
    if (absl::StartsWith(device, "cpu:")) {
      on_cpu_ = true;
      return "";
    }
    if (count == 0) return "has bytes without an allocation";
    if (!SetDevice(device, &event)) return "has a device without a number";
    if (count > kMaxAllocations - allocations_)
      return absl::StrCat("exceeds the limit of ", kMaxAllocations, " allocations");
    allocations_ += count;
    if (!tables_.StackOf(sample, &event.stack))
      return absl::StrCat("exceeds the limit of ", kMaxFrames, " frames");
    for (int64_t i = 0; i < count; ++i) {
      // JAX adds up allocations of one size.
      event.size = static_cast<uint64_t>(sample.value(1) / count + (i < sample.value(1) % count));
      columns_.Append(event);
    }
    return "";
  }

  Snapshot Finish() {
    columns_.Finish();
    snapshot_.set_name("end");
    snapshot_.set_reason("request");
    snapshot_.set_exact(true);
    return std::move(snapshot_);
  }
  bool on_cpu() const { return on_cpu_; }

 private:
  // "cuda:1", "gpu:1"
  static bool SetDevice(string_view label, Event* event) {
    if (label.empty()) return true;
    const string_view digits = label.substr(label.rfind(':') + 1);
    const char* end = digits.data() + digits.size();
    uint16_t number = 0;
    const auto [read, error] = std::from_chars(digits.data(), end, number);
    event->device = number;
    event->present |= format::kHasDevice;
    return error == std::errc() && read == end;
  }

  ProfileTables& tables_;
  Snapshot snapshot_;
  format::LiveAppender columns_;
  Event like_;
  int64_t allocations_ = 0;
  bool on_cpu_ = false;  // whether something lies on a CPU
};

}  // namespace

absl::Status ReadJaxProfile(const std::shared_ptr<format::ByteSource>& file, string_view name,
                            format::DefinitionsBuilder& definitions,
                            format::RecordingVisitor& visitor, Notes* notes) {
  const absl::StatusOr<std::string> bytes = Unpacked(file, name);
  if (!bytes.ok()) return bytes.status();
  pprof::Profile profile;
  if (!profile.ParseFromString(*bytes)) {
    return absl::DataLossError(
        absl::StrCat(name, ": the profile is truncated or damaged; save it again"));
  }
  ProfileTables tables(profile, definitions);
  absl::Status status = CheckTypes(profile, tables, name);
  if (!status.ok()) return status;
  LiveSet live(&tables, definitions.InternString(kJaxHeap));
  for (int i = 0; i < profile.sample_size(); ++i) {
    if (const std::string problem = live.Add(profile.sample(i)); !problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": sample ", i + 1, " ", problem));
    }
  }
  if (live.on_cpu()) notes->push_back(absl::StrCat(name, ": what lies on the CPU was left out"));
  return visitor.OnSnapshot(live.Finish());
}

bool LooksLikePprof(string_view first_bytes) {
  // The first field is a ValueType: 0A, its length, then one or two numbers of at most five bytes.
  constexpr char kSampleType = 0x0a, kType = 0x08, kUnit = 0x10;
  constexpr size_t kMaxTypeBytes = 12;
  if (first_bytes.size() < 4 || first_bytes[0] != kSampleType) return false;
  const auto length = static_cast<unsigned char>(first_bytes[1]);
  const string_view type = first_bytes.substr(2, length);
  if (length == 0 || length > kMaxTypeBytes || type.size() < length) return false;
  pprof::ValueType value;
  return (type[0] == kType || type[0] == kUnit) && value.ParseFromString(std::string(type)) &&
         value.type() > 0;
}

}  // namespace gmt::interop
