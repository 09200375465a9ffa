#include "interop/pprof/pprof_writer.h"

#include <zlib.h>

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "proto/pprof.pb.h"

namespace gmt::interop {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

// Returns the length of the UTF-8 character at the beginning of `text`, or 0 if it is invalid.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first >= 0xf5 || (first >= 0x80 && first < 0xc2) || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and values above U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90)) {
    return 0;
  }
  return length;
}

std::string AsUtf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      result += kReplacement;
      text.remove_prefix(1);
    } else {
      result.append(text, 0, length);
      text.remove_prefix(length);
    }
  }
  return result;
}

absl::StatusOr<std::string> Gzip(const std::string& bytes) {
  constexpr int kGzip = 15 + 16, kMemory = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return absl::ResourceExhaustedError("no memory to compress the profile");
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int done = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) return absl::InternalError("the profile could not be compressed");
  return result;
}

}  // namespace

struct PprofWriter::State {
  int64_t Text(std::string_view text);
  uint64_t MappingOf(const std::string& module);
  uint64_t FunctionOf(const analysis::FrameText& frame);
  uint64_t LocationOf(const analysis::FrameText& frame);

  pprof::Profile profile;
  absl::flat_hash_map<std::string, int64_t> texts;
  absl::flat_hash_map<std::string, uint64_t> mappings;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint64_t> functions;  // name, file
  absl::flat_hash_map<std::tuple<uint64_t, uint64_t, uint32_t>, uint64_t> locations;
};

PprofWriter::~PprofWriter() = default;

PprofWriter::PprofWriter(int64_t time_unix_ns, int64_t duration_ns)
    : state_(std::make_unique<State>()) {
  state_->Text("");
  const std::pair<const char*, const char*> types[] = {{"alloc_objects", "count"},
                                                       {"alloc_space", "bytes"},
                                                       {"inuse_objects", "count"},
                                                       {"inuse_space", "bytes"}};
  for (const auto& [type, unit] : types) {
    pprof::ValueType* value = state_->profile.add_sample_type();
    value->set_type(state_->Text(type));
    value->set_unit(state_->Text(unit));
  }
  state_->profile.set_default_sample_type(state_->Text("inuse_space"));
  state_->profile.mutable_period_type()->set_type(state_->Text("space"));
  state_->profile.mutable_period_type()->set_unit(state_->Text("bytes"));
  state_->profile.set_period(1);  // every allocation is recorded, without sampling
  state_->profile.set_time_nanos(time_unix_ns);
  state_->profile.set_duration_nanos(duration_ns);
  state_->profile.set_drop_frames(
      state_->Text("(cuda|cu)(Malloc|MemAlloc|HostAlloc|MemCreate|MemMap).*|.*gpumemtrace.*"));
}

int64_t PprofWriter::State::Text(std::string_view text) {
  const auto [it, is_new] =
      texts.try_emplace(std::string(text), static_cast<int64_t>(texts.size()));
  if (is_new) profile.add_string_table(AsUtf8(text));
  return it->second;
}

uint64_t PprofWriter::State::MappingOf(const std::string& module) {
  if (module.empty()) return 0;
  const auto [it, is_new] = mappings.try_emplace(module, mappings.size() + 1);
  if (is_new) {
    pprof::Mapping* mapping = profile.add_mapping();
    mapping->set_id(it->second);
    mapping->set_filename(Text(module));
    mapping->set_has_functions(true);
    mapping->set_has_filenames(true);
    mapping->set_has_line_numbers(true);
  }
  return it->second;
}

uint64_t PprofWriter::State::FunctionOf(const analysis::FrameText& frame) {
  const std::pair<int64_t, int64_t> key = {Text(frame.Name()), Text(frame.file)};
  const auto [it, is_new] = functions.try_emplace(key, functions.size() + 1);
  if (is_new) {
    pprof::Function* function = profile.add_function();
    function->set_id(it->second);
    function->set_name(key.first);
    function->set_system_name(key.first);
    function->set_filename(key.second);
  }
  return it->second;
}

uint64_t PprofWriter::State::LocationOf(const analysis::FrameText& frame) {
  const uint64_t mapping = frame.is_python() ? 0 : MappingOf(frame.module);
  const uint64_t function = FunctionOf(frame);
  const auto [it, is_new] =
      locations.try_emplace({mapping, function, frame.line}, locations.size() + 1);
  if (is_new) {
    pprof::Location* location = profile.add_location();
    location->set_id(it->second);
    location->set_mapping_id(mapping);
    pprof::Line* line = location->add_line();
    line->set_function_id(function);
    line->set_line(frame.line);
  }
  return it->second;
}

void PprofWriter::Add(const std::vector<analysis::FrameText>& frames, const PprofValues& values,
                      const PprofLabels& labels) {
  pprof::Sample* sample = state_->profile.add_sample();
  for (const analysis::FrameText& frame : frames)
    sample->add_location_id(state_->LocationOf(frame));
  if (frames.empty()) {
    analysis::FrameText none;
    none.function = "(no stack)";
    sample->add_location_id(state_->LocationOf(none));
  }
  for (const int64_t value :
       {values.alloc_objects, values.alloc_space, values.inuse_objects, values.inuse_space}) {
    sample->add_value(value);
  }
  for (const auto& [key, text] : labels) {
    pprof::Label* label = sample->add_label();
    label->set_key(state_->Text(key));
    label->set_str(state_->Text(text));
  }
}

void PprofWriter::AddComment(std::string_view text) {
  state_->profile.add_comment(state_->Text(text));
}

const pprof::Profile& PprofWriter::profile() const { return state_->profile; }

absl::StatusOr<std::string> PprofWriter::Finish() {
  return Gzip(state_->profile.SerializeAsString());
}

}  // namespace gmt::interop
