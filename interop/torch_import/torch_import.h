// interop/torch_import/torch_import.h
//
// Converts PyTorch's memory snapshot (the pickle written by torch.cuda.memory._dump_snapshot()) to
// a recording. The file is read only as data (interop/pickle/pickle_reader.h).
//
//   snapshot                     recording
//   state before the history     live set "begin" (interop/torch_import/torch_import_begin.h), frees of what waited
//   alloc                        ALLOC of a block: requested, stream, stack, forward_stack, pool,
//                                scope (compile_context), name (user_metadata)
//   free_requested, _completed   FREE and FREE_DONE of the block
//   segment_alloc, _free         ALLOC and FREE of driver memory
//   segment_map, _unmap          CREATE + MAP, UNMAP + RELEASE of physical memory, in pieces that
//                                later unmaps do not cut; reserved before all events
//   oom                          SAMPLE of the free bytes, ALLOC_FAILED
//   any other                    ALLOCATOR_ACTION with the action's name
//   external_annotations         RANGE_BEGIN, RANGE_END
//   allocator_settings           Facts.settings
//   final state                  live set "end"; it wins if it contradicts the history
//
// Driver memory of a segment has a pool, 0 for the default one. The history does not contain block
// sizes: the size is known if the block exists at the end, otherwise it is the request rounded up
// to 512.
//
// Memory: the pickle's values, until Read() has returned.
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_H_
#define GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "format/recording_reader.h"
#include "interop/pickle/pickle_reader.h"

namespace gmt::interop {

struct TorchImportSummary {
  uint64_t events = 0;                // entries of all traces
  uint64_t annotations = 0;           // entries of external_annotations
  uint64_t devices = 0;               // devices with a trace or a segment
  uint64_t segments = 0, blocks = 0;  // at the end; blocks in use
};

class TorchImport {
 public:
  // Reads the whole file. `name` stands for the path in messages.
  static absl::StatusOr<std::unique_ptr<TorchImport>> Open(
      std::shared_ptr<format::ByteSource> source, absl::string_view name,
      const PickleLimits& limits = {});
  ~TorchImport();

  // Passes the recording to the visitor. Call it once. IDs are those of `definitions`, which is
  // updated before the visitor is called.
  absl::Status Read(format::DefinitionsBuilder& definitions, format::RecordingVisitor& visitor);

  // The header of the recording, which is also the first thing that Read() passes on.
  const Header& header() const;
  // Valid after Read().
  const TorchImportSummary& summary() const;
  // Valid after Read(): what could not be represented, and what is contradictory, each as a
  // sentence.
  std::vector<std::string> notes() const;

 private:
  class Impl;
  explicit TorchImport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Returns whether a file that begins like this may be a snapshot: a pickle, or a gzip file, which
// may contain one.
bool LooksLikeTorchSnapshot(absl::string_view first_bytes);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_H_
