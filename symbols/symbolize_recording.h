// symbols/symbolize_recording.h
//
// Finds names for the native frames of a recording: at the end of a run (by the collector, which
// writes them to the file), or when an unsymbolised recording is read on the machine where it was
// made.
//
// Thread safety: one thread at a time.

#ifndef GMT_SYMBOLS_SYMBOLIZE_RECORDING_H_
#define GMT_SYMBOLS_SYMBOLIZE_RECORDING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "format/definitions.h"
#include "format/messages_fwd.h"
#include "symbols/symbolizer.h"

namespace gmt::symbols {

// A native frame to be named. UnnamedFrames() returns the requests of a recording.
struct FrameRequest {
  uint32_t frame = 0;  // id
  ModuleKey module;
  uint64_t address = 0;
  AddressKind kind = AddressKind::kReturn;
};

// Returns the native frames that have neither a name of their own nor symbols yet, ordered by
// module so that each module is opened once.
std::vector<FrameRequest> UnnamedFrames(const format::Definitions& definitions);
// Returns all native frames, including those with symbols.
std::vector<FrameRequest> NativeFrames(const format::Definitions& definitions);

// Returns the string id of a text: DefinitionsBuilder::InternString of the recording that receives
// the symbols.
using InternString = std::function<uint32_t(std::string_view)>;

struct SymbolizeResult {
  std::shared_ptr<gmt::Symbols> symbols;
  uint64_t named = 0;    // frames for which a name was found
  uint64_t unnamed = 0;  // frames that remain module + offset
};

// Looks up all `requests`. Never fails; frames without a name are counted.
SymbolizeResult Symbolize(const std::vector<FrameRequest>& requests, Symbolizer& symbolizer,
                          const InternString& intern);

// Names that are more detailed than the current ones of the native frames of the last file
// segment: a name instead of none, lines and inlined calls instead of a mere name. Never less
// detailed ones.
struct ImprovedNames {
  uint64_t frames = 0;  // native frames
  uint64_t named_before = 0, named = 0;
  uint64_t better = 0;  // frames with more detail than before, including newly named ones
  // Chunks to add to the segment, in order (format/recording_copy.h).
  std::shared_ptr<std::vector<gmt::Body>> bodies;
};
ImprovedNames FindImprovedNames(const format::Definitions& definitions, Symbolizer& symbolizer);

// For readers: adds symbols for unnamed frames to `definitions` itself and the new names to its
// strings. Returns how many frames got a name.
absl::StatusOr<uint64_t> SymbolizeInPlace(format::Definitions& definitions, Symbolizer& symbolizer);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_SYMBOLIZE_RECORDING_H_
