// symbols/symbolize_recording.h
//
// Names for the native frames of a recording: at the end of a run (the collector, which writes them
// into the file), or when an unsymbolised recording is read on the machine it was made on.
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

// A native frame to name. FrameRequest of a stored frame: UnnamedFrames().
struct FrameRequest {
  uint32_t frame = 0;  // id
  ModuleKey module;
  uint64_t address = 0;
  AddressKind kind = AddressKind::kReturn;
};

// The native frames that have neither a name of their own nor symbols yet, ordered by module, so
// that each module is open once.
std::vector<FrameRequest> UnnamedFrames(const format::Definitions& definitions);
// Those with symbols, too.
std::vector<FrameRequest> NativeFrames(const format::Definitions& definitions);

// Gives a text its string id: DefinitionsBuilder::InternString of the recording that the symbols go
// into.
using InternString = std::function<uint32_t(std::string_view)>;

struct SymbolizeResult {
  std::shared_ptr<gmt::Symbols> symbols;
  uint64_t named = 0;    // frames that got a name
  uint64_t unnamed = 0;  // frames that stay module + offset
};

// Looks all of `requests` up. Never fails: what has no name is counted.
SymbolizeResult Symbolize(const std::vector<FrameRequest>& requests, Symbolizer& symbolizer,
                          const InternString& intern);

// Names that say more than what the native frames of the last file segment are called so far: a
// name for none, lines and inlined calls for a mere name. Never fewer.
struct BetterNames {
  uint64_t frames = 0;  // native ones
  uint64_t named_before = 0, named = 0;
  uint64_t better = 0;  // with more than before, the newly named ones among them
  // To add to the segment, in order (format/recording_copy.h).
  std::shared_ptr<std::vector<gmt::Body>> bodies;
};
BetterNames NameBetter(const format::Definitions& definitions, Symbolizer& symbolizer);

// For readers: adds symbols for unnamed frames to `definitions` itself, whose strings grow by the
// new names. Returns how many frames got a name.
absl::StatusOr<uint64_t> SymbolizeInPlace(format::Definitions& definitions, Symbolizer& symbolizer);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_SYMBOLIZE_RECORDING_H_
