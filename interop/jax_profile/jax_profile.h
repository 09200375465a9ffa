// interop/jax_profile/jax_profile.h
//
// Converts JAX's device memory profile (jax.profiler.save_device_memory_profile()) to a recording.
// The profile is a pprof file with what is live at one moment.
//
//   profile                                   recording
//   sample: allocations n, space b, a stack   n live blocks of heap "jax", of b bytes together
//   label kind: "buffer", "executable"        name
//   label device: "cuda:1"                    device 1; without one: unknown
//   all samples                               live set "end"
//
// The profile has neither addresses, times nor frees. Samples of 0 bytes are left out: executables
// whose size JAX does not know. What lies on a CPU ("cpu:0") is left out too, with a note. A
// profile of pprof with other values than these two is an error.
//
// Memory: bounded by the limits on the profile's size and on the number of its allocations.
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_JAX_PROFILE_JAX_PROFILE_H_
#define GMT_INTEROP_JAX_PROFILE_JAX_PROFILE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/definitions_builder.h"
#include "format/recording_reader.h"
#include "interop/event_log/event_log.h"

namespace gmt::interop {

// Header.imported_from of the recording.
inline constexpr char kJaxProfileImport[] = "JAX device memory profile";

// Passes the recording to the visitor, without a header. IDs are those of `definitions`, which is
// updated before the visitor is called. `name` stands for the path in messages.
absl::Status ReadJaxProfile(const std::shared_ptr<format::ByteSource>& file, absl::string_view name,
                            format::DefinitionsBuilder& definitions,
                            format::RecordingVisitor& visitor, Notes* notes);

// Returns whether a file that begins like this, decompressed if necessary, is a profile of pprof.
bool LooksLikePprof(absl::string_view first_bytes);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_JAX_PROFILE_JAX_PROFILE_H_
