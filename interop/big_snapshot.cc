// Writes a snapshot of a training loop (format/allocator_trace.h) as PyTorch 2.12 under Python
// does: protocol 4, every value in the memo, frames, lists of frames and the strings of the layout
// shared, but not the texts of an event. tests/e2e/big_snapshot measures its import.
//
// Usage: big_snapshot BYTES OUT.pickle
// Prints one JSON line: bytes, events, segments and blocks of the file.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/allocator_trace.h"

namespace gmt::interop {
namespace {

using format::AllocatorTrace;
using format::Event;

constexpr uint64_t kSeed = 20261;
constexpr uint32_t kFramesOfStack = 24;
constexpr uint64_t kStart_us = 1'795'311'950'000'000;

// Writes what Python's pickler writes, opcode by opcode.
class PythonPickle {
 public:
  explicit PythonPickle(std::ostream& out) : out_(out) { Put("\x80\x04"); }

  uint64_t bytes() const { return bytes_; }
  void Put(std::string_view bytes) {
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes_ += bytes.size();
  }
  uint32_t Memoize() {
    Put("\x94");
    return memo_++;
  }
  uint32_t Begin(char container) {  // } or ]
    Put({&container, 1});
    return Memoize();
  }
  void Text(std::string_view text) {
    Put("\x8c");
    Little(text.size(), 1);
    Put(text);
    Memoize();
  }
  // Writes a string of which the program has one object.
  void Word(const std::string& word) {
    const auto [known, is_new] = words_.try_emplace(word, memo_);
    is_new ? Text(word) : Get(known->second);
  }
  void Get(uint32_t memo) {
    Put(memo < 256 ? "h" : "j");
    Little(memo, memo < 256 ? 1 : 4);
  }
  void Int(uint64_t value) {
    if (value < 256) return Number("K", value, 1);
    if (value < 65536) return Number("M", value, 2);
    if (value < uint64_t{1} << 31) return Number("J", value, 4);
    int bytes = 5;
    while (bytes < 8 && value >> (8 * bytes - 1) != 0) ++bytes;
    Put("\x8a");
    Number({}, static_cast<uint64_t>(bytes), 1);
    Little(value, bytes);
  }
  void Pair(uint64_t a, uint64_t b) {
    Int(a);
    Int(b);
    Put("\x86");
    Memoize();
  }
  // Call it between the items of a list that is written in batches.
  void NextItem(uint64_t* items) {
    if (*items > 0 && *items % 1000 == 0) Put("e");
    if ((*items)++ % 1000 == 0) Put("(");
  }
  void EndList(uint64_t items) {
    if (items > 0) Put("e");
  }

 private:
  void Number(std::string_view opcode, uint64_t value, int bytes) {
    Put(opcode);
    Little(value, bytes);
  }
  void Little(uint64_t value, int bytes) {
    char little[8];
    for (int i = 0; i < bytes; ++i) little[i] = static_cast<char>(value >> (8 * i));
    Put({little, static_cast<size_t>(bytes)});
  }

  std::ostream& out_;
  uint64_t bytes_ = 0;
  uint32_t memo_ = 0;
  absl::flat_hash_map<std::string, uint32_t> words_;
};

class Snapshot {
 public:
  Snapshot(uint64_t bytes, std::ostream& out) : wanted_(bytes), pickle_(out) {}

  void Write() {
    // The number of events follows from the size of one. The state at their end comes first in the
    // file.
    const uint64_t events = wanted_ / kBytesOfEvent;
    FindEnd(events);
    pickle_.Begin('}');
    pickle_.Put("(");
    pickle_.Word("segments");
    WriteSegments();
    pickle_.Word("device_traces");
    pickle_.Begin(']');
    WriteTrace(events);
    pickle_.Put("a");
    pickle_.Put("u.");
    std::printf("{\"bytes\": %" PRIu64 ", \"events\": %" PRIu64
                ", \"segments\": %zu, \"blocks\": %zu}\n",
                pickle_.bytes(), events_, segments_.size(), blocks_.size());
  }

 private:
  static constexpr uint64_t kBytesOfEvent = 94;

  // Returns the number of trace entries that an event of the loop becomes.
  static uint64_t EntriesOf(const Event& event) {
    return event.memory == BLOCK && event.kind == FREE ? 2 : 1;
  }

  void FindEnd(uint64_t events) {
    AllocatorTrace trace(kSeed);
    for (uint64_t done = 0; done < events;) {
      const Event event = trace.Next();
      done += EntriesOf(event);
      auto& held = event.memory == BLOCK ? blocks_ : segments_;
      if (event.kind == ALLOC) {
        held[event.address] = event;
      } else {
        held.erase(event.address);
      }
    }
  }

  void WriteSegments() {
    pickle_.Begin(']');
    uint64_t items = 0;
    for (const auto& [address, segment] : segments_) {
      pickle_.NextItem(&items);
      pickle_.Begin('}');
      pickle_.Put("(");
      Key("device", 0);
      Key("address", address);
      Key("total_size", segment.size);
      Key("stream", 0);
      pickle_.Word("segment_type");
      pickle_.Word(segment.size <= 2 << 20 ? "small" : "large");
      pickle_.Word("segment_pool_id");
      pickle_.Pair(0, 0);
      pickle_.Word("blocks");
      WriteBlocks(segment);
      pickle_.Put("u");
    }
    pickle_.EndList(items);
  }

  void WriteBlocks(const Event& segment) {
    pickle_.Begin(']');
    uint64_t items = 0, reached = segment.address;
    const uint64_t end = segment.address + segment.size;
    for (auto it = blocks_.lower_bound(segment.address); it != blocks_.end() && it->first < end;
         ++it) {
      if (it->first > reached) WriteBlock(reached, it->first - reached, nullptr, &items);
      WriteBlock(it->first, it->second.size, &it->second, &items);
      reached = it->first + it->second.size;
    }
    if (reached < end) WriteBlock(reached, end - reached, nullptr, &items);
    pickle_.EndList(items);
  }

  void WriteBlock(uint64_t address, uint64_t size, const Event* held, uint64_t* items) {
    pickle_.NextItem(items);
    pickle_.Begin('}');
    pickle_.Put("(");
    Key("address", address);
    Key("size", size);
    Key("requested_size", held == nullptr ? 0 : size);
    pickle_.Word("state");
    pickle_.Word(held == nullptr ? "inactive" : "active_allocated");
    pickle_.Word("frames");
    held == nullptr ? static_cast<void>(pickle_.Begin(']')) : WriteFrames(held->stack);
    pickle_.Put("u");
  }

  void WriteTrace(uint64_t events) {
    pickle_.Begin(']');
    AllocatorTrace trace(kSeed);
    uint64_t items = 0;
    while (events_ < events) {
      const Event event = trace.Next();
      events_ += EntriesOf(event);
      const bool is_block = event.memory == BLOCK, is_alloc = event.kind == ALLOC;
      if (is_block && !is_alloc) {
        WriteEvent("free_requested", event, &items);
        WriteEvent("free_completed", event, &items);
      } else {
        WriteEvent(is_block ? "alloc" : is_alloc ? "segment_alloc" : "segment_free", event, &items);
      }
    }
    pickle_.EndList(items);
  }

  void WriteEvent(const char* action, const Event& event, uint64_t* items) {
    pickle_.NextItem(items);
    pickle_.Begin('}');
    pickle_.Put("(");
    pickle_.Word("action");
    pickle_.Word(action);
    Key("addr", event.address);
    Key("size", event.size);
    Key("stream", 0);
    Key("time_us", kStart_us + static_cast<uint64_t>(event.t_ns) / 1000);
    pickle_.Word("compile_context");
    pickle_.Text("N/A");
    pickle_.Word("user_metadata");
    pickle_.Word("");
    pickle_.Word("pool_id");
    pickle_.Pair(0, 0);
    pickle_.Word("frames");
    WriteFrames(event.stack == 0 ? 1 : event.stack);
    pickle_.Put("u");
  }

  void WriteFrames(uint32_t stack) {
    const auto known = stacks_.find(stack);
    if (known != stacks_.end()) return pickle_.Get(known->second);
    stacks_[stack] = pickle_.Begin(']');
    uint64_t items = 0;
    for (uint32_t depth = 0; depth < kFramesOfStack; ++depth) {
      pickle_.NextItem(&items);
      WriteFrame(depth, depth < 4 ? stack : stack % (1 + kFramesOfStack - depth), stack % 400);
    }
    pickle_.EndList(items);
  }

  void WriteFrame(uint32_t depth, uint32_t branch, uint32_t line) {
    const std::string name = "function_" + std::to_string(depth) + "_" + std::to_string(branch);
    const auto known = frames_.find(name + ":" + std::to_string(line));
    if (known != frames_.end()) return pickle_.Get(known->second);
    frames_[name + ":" + std::to_string(line)] = pickle_.Begin('}');
    pickle_.Put("(");
    pickle_.Word("name");
    pickle_.Text(name);
    pickle_.Word("filename");
    pickle_.Text("/home/user/model/layer_" + std::to_string(branch % 40) + ".py");
    Key("line", 10 + line);
    pickle_.Put("u");
  }

  void Key(const char* key, uint64_t value) {
    pickle_.Word(key);
    pickle_.Int(value);
  }

  const uint64_t wanted_;
  PythonPickle pickle_;
  uint64_t events_ = 0;
  std::map<uint64_t, Event> segments_, blocks_;  // held at the end, by address
  absl::flat_hash_map<uint32_t, uint32_t> stacks_;
  absl::flat_hash_map<std::string, uint32_t> frames_;
};

}  // namespace
}  // namespace gmt::interop

int main(int argc, char** argv) {
  const uint64_t bytes = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (bytes == 0) {
    std::fprintf(stderr, "usage: big_snapshot BYTES OUT.pickle\n");
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
  gmt::interop::Snapshot(bytes, out).Write();
  out.close();
  if (!out) {
    std::fprintf(stderr, "big_snapshot: %s cannot be written\n", argv[2]);
    return 1;
  }
  return 0;
}
