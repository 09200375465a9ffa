#include "interop/timeline/heap_dumps.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/printable.h"
#include "interop/profile/layer_selection.h"

namespace gmt::interop {
namespace {

using analysis::FrameText;
using Sample = StackProfile::Sample;

constexpr size_t kSamplesOfPacket = 10'000, kStacksOfPacket = 1'000;

// A heap's name must not contain a colon: readers show what follows it.
std::string HeapName(int32_t device) {
  return device == analysis::kHostDevice ? "host" : absl::StrCat("cuda.device", device);
}

// Numbers names, files, frames and stacks, from 1. New ones are added to a packet.
class StackInterner {
 public:
  void SetTarget(perfetto::InternedData* target) { target_ = target; }

  // Stacks that differ only in frames of the allocator are one.
  uint64_t StackOf(const std::vector<FrameText>& frames) {
    std::vector<uint64_t> ids;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      ids.push_back(FrameOf(*frame));
    const auto [it, is_new] = stacks_.try_emplace(ids, stacks_.size() + 1);
    if (is_new) {
      perfetto::Callstack& stack = *target_->add_callstacks();
      stack.set_iid(it->second);
      stack.mutable_frame_ids()->Add(ids.begin(), ids.end());
    }
    return it->second;
  }

 private:
  using Texts = std::map<std::string, uint64_t>;

  static uint64_t TextOf(const std::string& text, Texts* texts,
                         google::protobuf::RepeatedPtrField<perfetto::InternedString>* added) {
    if (text.empty()) return 0;
    const auto [it, is_new] = texts->try_emplace(text, texts->size() + 1);
    if (is_new) {
      perfetto::InternedString& string = *added->Add();
      string.set_iid(it->second);
      string.set_str(format::Printable(text));
    }
    return it->second;
  }

  // Readers before 2025 ignore a frame without a mapping.
  uint64_t MappingOf(const FrameText& frame) {
    const std::string path = !frame.module.empty()     ? frame.module
                             : !frame.language.empty() ? frame.language
                                                       : "unknown";
    const size_t known = paths_.size();
    const uint64_t id = TextOf(path, &paths_, target_->mutable_mapping_paths());
    if (paths_.size() > known) {
      perfetto::Mapping& mapping = *target_->add_mappings();
      mapping.set_iid(id);
      mapping.add_path_string_ids(id);
    }
    return id;
  }

  uint64_t FrameOf(const FrameText& frame) {
    const uint64_t function = TextOf(frame.Name(), &functions_, target_->mutable_function_names());
    const uint64_t file = TextOf(frame.file, &files_, target_->mutable_source_paths());
    const uint64_t mapping = MappingOf(frame);
    const auto [it, is_new] =
        frames_.try_emplace({function, file, mapping, frame.line}, frames_.size() + 1);
    if (is_new) {
      perfetto::Frame& added = *target_->add_frames();
      added.set_iid(it->second);
      added.set_function_name_id(function);
      added.set_mapping_id(mapping);
      // Readers that know no lines take frames with equal addresses for the same.
      added.set_rel_pc(it->second);
      added.set_source_path_iid(file);
      added.set_line_number(frame.line);
      added.set_kind(frame.is_python() ? perfetto::Frame::KIND_INTERPRETED
                                       : perfetto::Frame::KIND_NATIVE);
    }
    return it->second;
  }

  perfetto::InternedData* target_ = nullptr;
  Texts functions_, files_, paths_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t, uint32_t>, uint64_t> frames_;
  std::map<std::vector<uint64_t>, uint64_t> stacks_;
};

class HeapDumpWriter {
 public:
  HeapDumpWriter(const analysis::Examination& examination, const StackHistory& history,
                 uint32_t sequence, PerfettoFile* file)
      : trace_(examination.trace()), history_(history), sequence_(sequence), file_(file) {
    packet_.set_sequence_flags(kStateCleared);
    for (size_t first = 0; first < history.sites.size(); first += kStacksOfPacket)
      WriteStacks(examination, first);
  }

  void Write(std::set<int64_t>* times) {
    int64_t last_t_ns = INT64_MIN;
    for (size_t i = 0; i < history_.instants.size(); ++i) {
      int64_t t_ns = std::max(history_.instants[i].t_ns, last_t_ns);
      while (!times->insert(t_ns).second) ++t_ns;
      last_t_ns = t_ns;
      WriteDump(i, t_ns);
    }
  }

 private:
  void WriteStacks(const analysis::Examination& examination, size_t first) {
    interner_.SetTarget(packet_.mutable_interned_data());
    const size_t end = std::min(first + kStacksOfPacket, history_.sites.size());
    for (size_t site = first; site < end; ++site) {
      sites_of_[interner_.StackOf(ProfileFrames(examination, history_.sites[site].front().stack))]
          .push_back(site);
    }
    Emit(0);
  }

  // Only what has changed: for readers, a stack that is not listed stays as it was.
  void WriteDump(size_t instant, int64_t t_ns) {
    perfetto::ProfilePacket::ProcessHeapSamples* heap = BeginPacket(t_ns);
    for (const auto& [stack, sites] : sites_of_) {
      const Sample now = SumOf(sites, instant);
      const Sample before = instant == 0 ? Sample() : SumOf(sites, instant - 1);
      if (now.alloc_objects == before.alloc_objects && now.inuse_objects == before.inuse_objects)
        continue;
      if (static_cast<size_t>(heap->samples_size()) == kSamplesOfPacket) {
        packet_.mutable_profile_packet()->set_continued(true);
        Emit(t_ns);
        heap = BeginPacket(t_ns);
      }
      perfetto::ProfilePacket::HeapSample& sample = *heap->add_samples();
      sample.set_callstack_id(stack);
      sample.set_self_allocated(static_cast<uint64_t>(now.alloc_space));
      sample.set_self_freed(static_cast<uint64_t>(now.alloc_space - now.inuse_space));
      sample.set_alloc_count(static_cast<uint64_t>(now.alloc_objects));
      sample.set_free_count(static_cast<uint64_t>(now.alloc_objects - now.inuse_objects));
    }
    Emit(t_ns);
  }

  Sample SumOf(const std::vector<size_t>& sites, size_t instant) const {
    Sample sum;
    for (const size_t site : sites) {
      const Sample& sample = history_.sites[site][instant];
      sum.alloc_objects += sample.alloc_objects;
      sum.alloc_space += sample.alloc_space;
      sum.inuse_objects += sample.inuse_objects;
      sum.inuse_space += sample.inuse_space;
    }
    return sum;
  }

  perfetto::ProfilePacket::ProcessHeapSamples* BeginPacket(int64_t t_ns) {
    packet_.mutable_profile_packet()->set_index(packets_++);
    perfetto::ProfilePacket::ProcessHeapSamples* heap =
        packet_.mutable_profile_packet()->add_process_dumps();
    heap->set_pid(trace_.pid);
    heap->set_timestamp(UnixTime(t_ns));
    heap->set_heap_name(HeapName(history_.device));
    heap->set_sampling_interval_bytes(1);  // nothing is sampled
    heap->set_orig_sampling_interval_bytes(1);
    return heap;
  }

  void Emit(int64_t t_ns) {
    packet_.set_timestamp(UnixTime(t_ns));
    packet_.set_timestamp_clock_id(kRealtime);
    file_->Emit(sequence_, &packet_);
    packet_.set_sequence_flags(kNeedsState);  // for the next packet
  }

  uint64_t UnixTime(int64_t t_ns) const { return PerfettoTime(trace_.start_unix_ns + t_ns); }

  const analysis::Trace& trace_;
  const StackHistory& history_;
  const uint32_t sequence_;
  PerfettoFile* const file_;
  perfetto::TracePacket packet_;
  StackInterner interner_;
  std::map<uint64_t, std::vector<size_t>> sites_of_;  // by stack
  uint64_t packets_ = 0;                              // with dumps
};

}  // namespace

void WriteHeapDumps(const analysis::Examination& examination, const StackHistory& history,
                    uint32_t sequence, std::set<int64_t>* times, PerfettoFile* file) {
  HeapDumpWriter(examination, history, sequence, file).Write(times);
}

}  // namespace gmt::interop
