// Which kinds of records are enabled, for which contexts and functions.
//
// Thread safety: all functions may be called from any thread.
#ifndef TESTS_SIMCUDA_CUPTI_ACTIVITY_H_
#define TESTS_SIMCUDA_CUPTI_ACTIVITY_H_

#include <cuda.h>
#include <cupti.h>

#include <array>
#include <cstddef>
#include <vector>

namespace sim {

// Returns whether records of a kind are enabled for a context.
bool IsEnabled(CUpti_ActivityKind kind, CUcontext context);

// Returns whether records of a function of the runtime or the driver are enabled.
bool IsApiEnabled(bool runtime, uint32_t id);

// Returns the size of the record that this version of CUPTI writes for a kind; 0 if it writes none
// here.
size_t RecordSize(CUpti_ActivityKind kind);

// Returns the id of this thread in records.
uint32_t ThreadNumber();

// Returns the device memory that CUPTI holds in each context now.
uint64_t OwnDeviceMemory();

// The external ids pushed by this thread, innermost last, by kind.
using ExternalIds = std::array<std::vector<uint64_t>, 16>;
ExternalIds& ThreadExternalIds();

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_ACTIVITY_H_
