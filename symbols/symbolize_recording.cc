#include "symbols/symbolize_recording.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "proto/gmt.pb.h"

namespace gmt::symbols {
namespace {

constexpr int kRowsOfBody = 16384;

std::vector<FrameRequest> RequestsFor(const format::Definitions& definitions,
                                      std::vector<uint32_t> ids) {
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

bool SaysMore(const std::vector<ResolvedSymbol>& found, const std::vector<format::Symbol>& known) {
  const auto lines = [](const auto& symbols) {
    return std::count_if(symbols.begin(), symbols.end(), [](const auto& s) { return s.line != 0; });
  };
  return std::pair(lines(found), found.size()) > std::pair(lines(known), known.size());
}

// Collects rows of symbols and their texts in chunks of bounded size.
class BodyWriter {
 public:
  // Ids of new texts follow those in the last segment of `definitions`.
  explicit BodyWriter(const format::Definitions& definitions)
      : base_(definitions.base()), strings_(definitions.string_count() - base_.string) {}

  void Add(uint32_t frame, const std::vector<ResolvedSymbol>& found) {
    for (const ResolvedSymbol& symbol : found) {
      symbols_.add_frame(frame - base_.frame);
      symbols_.add_function(Intern(symbol.function));
      symbols_.add_file(Intern(symbol.file));
      symbols_.add_line(static_cast<uint32_t>(symbol.line));
    }
    if (symbols_.frame_size() >= kRowsOfBody) Close();
  }

  std::vector<gmt::Body> Take() {
    Close();
    return std::move(bodies_);
  }

 private:
  uint32_t Intern(const std::string& text) {
    if (text.empty()) return 0;
    const auto [it, is_new] = ids_.try_emplace(text, strings_ + 1);
    if (is_new) {
      if (definitions_.strings_size() == 0) definitions_.set_first_string(it->second);
      definitions_.add_strings(text);
      ++strings_;
    }
    return it->second;
  }

  void Close() {
    if (definitions_.strings_size() > 0) {
      *bodies_.emplace_back().mutable_definitions() =
          std::exchange(definitions_, gmt::Definitions());
    }
    if (symbols_.frame_size() == 0) return;
    symbols_.set_count(static_cast<uint32_t>(symbols_.frame_size()));
    *bodies_.emplace_back().mutable_symbols() = std::exchange(symbols_, gmt::Symbols());
  }

  const format::Definitions::Base base_;
  uint32_t strings_;
  absl::flat_hash_map<std::string, uint32_t> ids_;
  gmt::Definitions definitions_;
  gmt::Symbols symbols_;
  std::vector<gmt::Body> bodies_;
};

}  // namespace

std::vector<FrameRequest> UnnamedFrames(const format::Definitions& definitions) {
  std::vector<FrameRequest> requests = NativeFrames(definitions);
  std::erase_if(requests, [&](const FrameRequest& request) {
    return !definitions.symbols(request.frame).empty();
  });
  return requests;
}

std::vector<FrameRequest> NativeFrames(const format::Definitions& definitions) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 1; id <= definitions.frame_count(); ++id) {
    const format::FrameInfo& frame = definitions.frame(id);
    if (frame.module != 0 && frame.function == 0) ids.push_back(id);
  }
  return RequestsFor(definitions, std::move(ids));
}

ImprovedNames FindImprovedNames(const format::Definitions& definitions, Symbolizer& symbolizer) {
  ImprovedNames names;
  BodyWriter writer(definitions);
  for (const FrameRequest& request : NativeFrames(definitions)) {
    if (request.frame <= definitions.base().frame) continue;
    const std::vector<format::Symbol>& known = definitions.symbols(request.frame);
    const auto found = symbolizer.Resolve(request.module, request.address, request.kind);
    ++names.frames;
    names.named_before += !known.empty();
    names.named += !known.empty() || !found.empty();
    if (!SaysMore(found, known)) continue;
    ++names.better;
    writer.Add(request.frame, found);
  }
  names.bodies = std::make_shared<std::vector<gmt::Body>>(writer.Take());
  return names;
}

SymbolizeResult Symbolize(const std::vector<FrameRequest>& requests, Symbolizer& symbolizer,
                          const InternString& intern) {
  SymbolizeResult result;
  auto symbols = std::make_shared<gmt::Symbols>();
  for (const FrameRequest& request : requests) {
    const auto resolved = symbolizer.Resolve(request.module, request.address, request.kind);
    ++(resolved.empty() ? result.unnamed : result.named);
    for (const ResolvedSymbol& symbol : resolved) {
      symbols->add_frame(request.frame);
      symbols->add_function(symbol.function.empty() ? 0 : intern(symbol.function));
      symbols->add_file(symbol.file.empty() ? 0 : intern(symbol.file));
      symbols->add_line(static_cast<uint32_t>(symbol.line));
    }
  }
  symbols->set_count(static_cast<uint32_t>(symbols->frame_size()));
  result.symbols = std::move(symbols);
  return result;
}

absl::StatusOr<uint64_t> SymbolizeInPlace(format::Definitions& definitions,
                                          Symbolizer& symbolizer) {
  // Added ids are relative to the last file segment; arithmetic modulo 2^32 reaches earlier
  // segments.
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
  for (uint32_t& frame : *result.symbols->mutable_frame()) frame -= base.frame;
  absl::Status status = definitions.Add(added);
  if (status.ok()) status = definitions.Add(*result.symbols);
  if (!status.ok()) return status;
  return result.named;
}

}  // namespace gmt::symbols
