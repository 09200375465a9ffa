// interop/torch/torch_frames.h
//
// TorchFrameWriter: stacks as lists of frame dicts, each list and each frame written once. Behind
// the frames of memory that a backward pass allocated stand those of the forward call that made the
// backward node, so that the viewer shows both; `forward_frames` has them as PyTorch does, a text
// for each, outermost first.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_TORCH_FRAMES_H_
#define GMT_INTEROP_TORCH_TORCH_FRAMES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/stacks/frames.h"
#include "format/definitions.h"
#include "interop/pickle/pickle_writer.h"

namespace gmt::interop {

// The frames to write for a stack, innermost first: all of them, or without noise.
using StackFrames = std::function<std::vector<analysis::FrameText>(uint32_t stack)>;

// The frames of a stack as an imported snapshot stated them: native code without debug information
// has the file "??" there.
std::vector<analysis::FrameText> StatedFrames(const format::Definitions& definitions,
                                              uint32_t stack);

class TorchFrameWriter {
 public:
  TorchFrameWriter(const StackFrames& frames_of, PickleWriter& pickle)
      : frames_of_(frames_of), pickle_(pickle) {}

  // forward_stack 0: the stack alone.
  void Write(uint32_t stack, uint32_t forward_stack);
  void WriteForward(uint32_t forward_stack);

 private:
  void WriteFrame(const std::string& name, const std::string& file, uint32_t line);
  void WriteFrame(const analysis::FrameText& frame);

  const StackFrames& frames_of_;
  PickleWriter& pickle_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, PickleWriter::Memo> lists_;
  absl::flat_hash_map<uint32_t, PickleWriter::Memo> forward_lists_;
  absl::flat_hash_map<std::string, PickleWriter::Memo> frames_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_FRAMES_H_
