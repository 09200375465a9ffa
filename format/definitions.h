// format/definitions.h
//
// Definitions: the strings, modules, frames, stacks and symbols of one recording, as collected by a
// reader. A DefinitionsBuilder assigns ids when writing.
//
// Ids start at 1; 0 is "none" and looks up as an empty value. An undefined id (in a damaged or
// foreign file) also looks up as "none": no lookup can fail or go out of bounds.
//
// Thread safety: const methods may be called from any thread while no other thread adds
// definitions.

#ifndef GMT_FORMAT_DEFINITIONS_H_
#define GMT_FORMAT_DEFINITIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "format/messages_fwd.h"

namespace gmt::format {

enum FrameFlags : uint32_t {
  kFrameIsReturnAddress = 1u << 0,  // symbols are looked up at address - 1
  kFrameHasLine = 1u << 1,
  kFrameHasFile = 1u << 2,
  kFrameHasModuleName = 1u << 3,
  kFrameHasFunction = 1u << 4,
};

struct ModuleInfo {
  std::string path;
  std::string build_id;  // raw bytes
  uint64_t base = 0, size = 0, bias = 0;
  int64_t loaded_t_ns = 0;

  bool operator==(const ModuleInfo&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ModuleInfo& m) {
    return H::combine(std::move(h), m.path, m.build_id, m.base, m.size, m.bias, m.loaded_t_ns);
  }
};

// Same values as Frames.Language in gmt.proto.
enum class Language : int { kNative = 0, kCxx = 1, kPython = 2, kOther = 3 };

struct FrameInfo {
  uint32_t module = 0;   // module id
  uint64_t address = 0;  // in the module's ELF file; in memory if module is 0
  uint32_t function = 0, file = 0, module_name = 0;  // string ids, for named frames
  uint32_t line = 0;
  Language language = Language::kNative;
  uint32_t other_language = 0;  // string id
  uint32_t flags = 0;

  bool operator==(const FrameInfo&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const FrameInfo& f) {
    return H::combine(std::move(h), f.module, f.address, f.function, f.file, f.module_name, f.line,
                      f.language, f.other_language, f.flags);
  }
};

// Properties that a stack lacks (gmt.proto, Stacks.lacks).
enum StackLacks : uint32_t {
  kStackTruncated = 1u << 0,
  kStackUnmerged = 1u << 1,
  kStackNoPython = 1u << 2,
};

struct StackNode {
  uint32_t frame = 0;   // frame id
  uint32_t parent = 0;  // stack id of the caller
  uint32_t log_id = 0;
  uint32_t lacks = 0;  // StackLacks; of the whole stack, at its outermost frame

  bool operator==(const StackNode&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackNode& n) {
    return H::combine(std::move(h), n.frame, n.parent, n.log_id, n.lacks);
  }
};

// The meaning of a frame: a function and a source location. A frame with inlined calls has several,
// innermost first.
struct Symbol {
  uint32_t function = 0, file = 0, line = 0;  // string ids, line number
};

class Definitions {
 public:
  // Adds the definitions of one chunk. Ids of chunks lost before it stay undefined. Fails and adds
  // nothing if the chunk skips or declares more ids than a file can reasonably have.
  absl::Status Add(const gmt::Definitions& chunk);
  // Adds symbols. They replace earlier symbols of the same frame.
  absl::Status Add(const gmt::Symbols& chunk);

  // Makes strings and paths of modules that are added from now on safe to print
  // (format/printable.h).
  void MakeStringsPrintable() { printable_ = true; }

  // Begins another file segment. Ids in later chunks count from 1 again and are looked up as
  // id + base.
  void BeginSegment();
  // Declares the segment begun last to be the next part of the previous one, with the same ids.
  void ContinueSegment() { base_ = previous_base_; }
  struct Base {
    uint32_t string = 0, module = 0, frame = 0, stack = 0;
    bool none() const { return (string | module | frame | stack) == 0; }
  };
  const Base& base() const { return base_; }

  std::string_view string(uint32_t id) const;
  const ModuleInfo& module(uint32_t id) const;
  const FrameInfo& frame(uint32_t id) const;
  const StackNode& stack(uint32_t id) const;
  const std::vector<Symbol>& symbols(uint32_t frame) const;

  uint32_t string_count() const { return static_cast<uint32_t>(strings_.size()); }
  uint32_t module_count() const { return static_cast<uint32_t>(modules_.size()); }
  uint32_t frame_count() const { return static_cast<uint32_t>(frames_.size()); }
  uint32_t stack_count() const { return static_cast<uint32_t>(stacks_.size()); }

  // Returns the frame ids of a stack, innermost first. A parent that does not precede its child
  // (only in a damaged file) counts as none.
  std::vector<uint32_t> StackFrames(uint32_t stack) const;
  // Returns a set of StackLacks.
  uint32_t WhatStackLacks(uint32_t stack) const;

 private:
  absl::Status CheckRoom(const gmt::Definitions& chunk) const;
  void AddFrames(const gmt::Frames& columns, size_t at);
  void AddStacks(const gmt::Stacks& columns, size_t at);

  bool printable_ = false;
  Base base_, previous_base_;
  uint64_t undefined_ = 0;  // ids left out so far
  std::vector<std::string> strings_;
  std::vector<ModuleInfo> modules_;
  std::vector<FrameInfo> frames_;
  std::vector<StackNode> stacks_;
  std::unordered_map<uint32_t, std::vector<Symbol>> symbols_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_DEFINITIONS_H_
