// interop/torch_import/torch_import_stacks.h
//
// Converts the frame lists of a PyTorch snapshot to stacks of a recording. A list or frame that the
// pickle refers to repeatedly is converted once.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_STACKS_H_
#define GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_STACKS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "interop/pickle/pickle_value.h"

namespace gmt::interop {

class SnapshotStacks {
 public:
  SnapshotStacks(const PickleTree& tree, format::DefinitionsBuilder& definitions);

  // Converts a list of {name, filename, line}, innermost first. Returns 0 for an empty or missing
  // list.
  uint32_t StackOf(PickleValue frames);
  // Converts a list of texts as Python's traceback.format_stack() makes them, outermost first: the
  // stack of the forward pass.
  uint32_t ForwardStackOf(PickleValue texts);

  // What a frame cannot represent: the number of frames with unknown fields, of source lines in
  // forward stacks, and of entries that are not frames.
  bool any() const { return !stacks_.empty(); }
  uint64_t frames_with_more() const { return frames_with_more_; }
  uint64_t source_lines() const { return source_lines_; }
  uint64_t no_frames() const { return no_frames_; }

 private:
  enum class Order { kInnermostFirst, kOutermostFirst };

  template <typename FrameOf>
  uint32_t Intern(PickleValue list, Order order, FrameOf frame_of);
  std::optional<uint32_t> FrameOfDict(PickleValue dict);
  std::optional<uint32_t> FrameOfText(PickleValue text);

  const PickleTree& tree_;
  format::DefinitionsBuilder& definitions_;
  const PickleValue name_, filename_, line_;
  absl::flat_hash_map<uint64_t, uint32_t> stacks_;  // by identity of the list
  absl::flat_hash_map<uint64_t, std::optional<uint32_t>>
      frames_;  // by identity of the dict or text
  uint64_t frames_with_more_ = 0, source_lines_ = 0, no_frames_ = 0;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_STACKS_H_
