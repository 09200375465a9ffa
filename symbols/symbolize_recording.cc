#include "symbols/symbolize_recording.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gmt::symbols {

std::vector<FrameRequest> UnnamedFrames(const format::Definitions& definitions) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 1; id <= definitions.frame_count(); ++id) {
    const format::FrameInfo& frame = definitions.frame(id);
    if (frame.module != 0 && frame.function == 0 && definitions.symbols(id).empty())
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
    const format::FrameInfo &x = definitions.frame(a), &y = definitions.frame(b);
    return std::pair(x.module, x.address) < std::pair(y.module, y.address);
  });
  std::vector<FrameRequest> requests;
  requests.reserve(ids.size());
  for (uint32_t id : ids) {
    const format::FrameInfo& frame = definitions.frame(id);
    const format::ModuleInfo& module = definitions.module(frame.module);
    const bool is_return = (frame.flags & format::kFrameIsReturnAddress) != 0;
    requests.push_back({id,
                        {module.path, module.build_id},
                        frame.address,
                        is_return ? AddressKind::kReturn : AddressKind::kExact});
  }
  return requests;
}

SymbolizeResult Symbolize(const std::vector<FrameRequest>& requests, Symbolizer& symbolizer,
                          const InternString& intern) {
  SymbolizeResult result;
  for (const FrameRequest& request : requests) {
    const auto resolved = symbolizer.Resolve(request.module, request.address, request.kind);
    ++(resolved.empty() ? result.unnamed : result.named);
    for (const ResolvedSymbol& symbol : resolved) {
      result.symbols.add_frame(request.frame);
      result.symbols.add_function(symbol.function.empty() ? 0 : intern(symbol.function));
      result.symbols.add_file(symbol.file.empty() ? 0 : intern(symbol.file));
      result.symbols.add_line(static_cast<uint32_t>(symbol.line));
    }
  }
  result.symbols.set_count(static_cast<uint32_t>(result.symbols.frame_size()));
  return result;
}

absl::StatusOr<uint64_t> SymbolizeInPlace(format::Definitions& definitions,
                                          Symbolizer& symbolizer) {
  // What is added is read as ids of the last file segment; counting modulo 2^32 reaches the others.
  const format::Definitions::Base base = definitions.base();
  const uint32_t known = definitions.string_count() - base.string;
  gmt::Definitions added;
  absl::flat_hash_map<std::string, uint32_t> ids;
  SymbolizeResult result =
      Symbolize(UnnamedFrames(definitions), symbolizer, [&](std::string_view text) {
        const uint32_t next = known + static_cast<uint32_t>(ids.size()) + 1;
        const auto [it, is_new] = ids.try_emplace(std::string(text), next);
        if (is_new) added.add_strings(it->first);
        return it->second;
      });
  for (uint32_t& frame : *result.symbols.mutable_frame()) frame -= base.frame;
  absl::Status status = definitions.Add(added);
  if (status.ok()) status = definitions.Add(result.symbols);
  if (!status.ok()) return status;
  return result.named;
}

}  // namespace gmt::symbols
