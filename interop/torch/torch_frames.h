// interop/torch/torch_frames.h
//
// TorchFrameWriter: writes stacks as lists of frame dicts, each list and each frame once. For
// memory that a backward pass allocated, its frames are followed by those of the forward call that
// created the backward node, so that the viewer shows both. `forward_frames` has the latter as
// PyTorch writes them, one text per frame, outermost first.
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

// Returns the frames to write for a stack, innermost first: all of them, or without noise.
using StackFrames = std::function<std::vector<analysis::FrameText>(uint32_t stack)>;

// Returns the frames of a stack as an imported snapshot had them: native code without debug
// information has the file "??".
std::vector<analysis::FrameText> StatedFrames(const format::Definitions& definitions,
                                              uint32_t stack);

class TorchFrameWriter {
 public:
  TorchFrameWriter(const StackFrames& frames_of, PickleWriter& pickle)
      : frames_of_(frames_of), pickle_(pickle) {}

  // If forward_stack is 0, writes only `stack`.
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
