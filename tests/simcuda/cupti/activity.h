// Which kinds of records are wanted, of which contexts and which functions.
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

// Whether records of a kind are wanted of a context.
bool Wanted(CUpti_ActivityKind kind, CUcontext context);

// Whether records of a function of the runtime or the driver are wanted.
bool ApiWanted(bool runtime, uint32_t id);

// Bytes of the record that this version of CUPTI writes for a kind; 0 when it writes none here.
size_t RecordSize(CUpti_ActivityKind kind);

// The number that records have for this thread.
uint32_t ThreadNumber();

// Device memory that CUPTI holds in each context now.
uint64_t OwnDeviceMemory();

// The ids that this thread pushed, innermost last, by kind.
using ExternalIds = std::array<std::vector<uint64_t>, 16>;
ExternalIds& ThreadExternalIds();

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_ACTIVITY_H_
