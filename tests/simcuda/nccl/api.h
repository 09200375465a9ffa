// The part of NCCL's interface that the stand-in implements. NCCL's header is not available to the
// build; types and values are those of nccl.h 2.28.9, which are the same in every release since
// 2.18 except for additions at the end of ncclConfig_t.
#ifndef TESTS_SIMCUDA_NCCL_API_H_
#define TESTS_SIMCUDA_NCCL_API_H_

#include <cstddef>

#include "tests/simcuda/runtime/cudart_api.h"

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
};

// Sizes of ncclDataType_t: int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 and the
// two 8-bit floats.
inline constexpr size_t kNcclTypeSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

struct ncclUniqueId {
  char internal[128];
};

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclConfig_t;  // ignored by this implementation

inline constexpr int kNcclSplitNoColor = -1;
inline constexpr int kNcclOperations = 5;  // sum, product, maximum, minimum, average

#endif  // TESTS_SIMCUDA_NCCL_API_H_
