// collector/events/torch_source.h
//
// Reports whether blocks of PyTorch's caching allocator were recorded, and if not, why.
//
// Thread safety: pure functions; TorchSource reads a file.

#ifndef GMT_COLLECTOR_EVENTS_TORCH_SOURCE_H_
#define GMT_COLLECTOR_EVENTS_TORCH_SOURCE_H_

#include <string>
#include <string_view>

#include "collector/sessions/session_info.h"
#include "session/options.h"

namespace gmt::collector {

// The beginning of the file name of PyTorch's caching allocator.
inline constexpr std::string_view kCachingAllocator = "libc10_cuda";
bool IsCachingAllocator(std::string_view path);

// Returns "on", or a reason in words. `said`: the status reported by the traced process; empty if
// no block was reported. `library`: the path of the caching allocator's library; empty if the
// process has none.
std::string TorchSource(const SessionInfo& info, const session::Options& options,
                        const std::string& said, const std::string& library);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_TORCH_SOURCE_H_
