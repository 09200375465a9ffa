// cuDNN's graph interface, which PyTorch uses for convolutions. Descriptors store the attributes
// that are set and return them. A heuristic finds one engine for every graph, and a plan's
// workspace has SIMCUDA_WORKSPACE bytes.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/simcuda/math/cudnn_objects.h"

namespace {

using sim::kCudnnBadParameter;
using sim::kCudnnSuccess;

// cudnnBackendAttributeType_t, and the bytes of one element of each.
enum Type { kBoolean = 2, kInt64 = 3, kDescriptor = 15, kChar = 24 };

size_t SizeOf(int type) {
  switch (type) {
    case 0:  // handle
    case kInt64:
    case 5:  // double
    case 6:  // pointer
    case kDescriptor:
      return 8;
    case kBoolean:
    case kChar:
      return 1;
    case 26:  // fraction: two int64
      return 16;
    default:  // enumerations, int32, float
      return 4;
  }
}

// cudnnBackendDescriptorType_t
enum Kind { kEngine = 2, kEngineConfig = 3, kHeuristic = 4, kPlan = 5, kGraph = 15 };

// cudnnBackendAttributeName_t: the attributes that can be queried without having been set.
enum Name {
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanWorkspaceSize = 402,
  kPlanText = 405,
  kGraphEngineCount = 802,
  kEngineIndex = 1301,
};

}  // namespace

struct CudnnBackendDescriptor {
  struct Attribute {
    int type = 0;
    int64_t count = 0;
    std::vector<char> bytes;
  };

  int kind;
  std::map<int, Attribute> attributes;
};

namespace {

using Attribute = CudnnBackendDescriptor::Attribute;

template <typename T>
Attribute One(int type, T value) {
  Attribute attribute{.type = type, .count = 1, .bytes = std::vector<char>(sizeof value)};
  std::memcpy(attribute.bytes.data(), &value, sizeof value);
  return attribute;
}

// Answers what the library itself knows. Returns false if the answer is what was set, or nothing.
bool Known(const CudnnBackendDescriptor& descriptor, int name, Attribute* answer) {
  switch (name) {
    case kPlanWorkspaceSize:
      *answer = One(kInt64, static_cast<int64_t>(sim::LibrarySettings().workspace));
      return descriptor.kind == kPlan;
    case kPlanText:
      *answer = {.type = kChar, .count = 3, .bytes = {'{', '}', '\0'}};
      return descriptor.kind == kPlan;
    case kGraphEngineCount:
      *answer = One(kInt64, int64_t{1});
      return descriptor.kind == kGraph;
    case kEngineIndex:
      *answer = One(kInt64, int64_t{0});
      return descriptor.kind == kEngine && !descriptor.attributes.contains(name);
    default:
      return false;
  }
}

// Fills in descriptors created by the caller. Results found by the library equal a newly created
// descriptor; others are copied into it.
void FillDescriptors(const Attribute* set, int64_t count, void* array) {
  auto** given = static_cast<CudnnBackendDescriptor**>(array);
  for (int64_t i = 0; i < count && set != nullptr; ++i) {
    CudnnBackendDescriptor* stored = nullptr;
    std::memcpy(&stored, set->bytes.data() + i * sizeof stored, sizeof stored);
    if (given[i] != nullptr && stored != nullptr) *given[i] = *stored;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cudnnBackendCreateDescriptor(int kind, CudnnBackendDescriptor** descriptor) {
  if (descriptor == nullptr) return kCudnnBadParameter;
  *descriptor = new CudnnBackendDescriptor{.kind = kind};
  return kCudnnSuccess;
}

int cudnnBackendDestroyDescriptor(CudnnBackendDescriptor* descriptor) {
  delete descriptor;
  return kCudnnSuccess;
}

int cudnnBackendSetAttribute(CudnnBackendDescriptor* descriptor, int name, int type, int64_t count,
                             const void* array) {
  if (descriptor == nullptr || count < 0 || (count > 0 && array == nullptr)) {
    return kCudnnBadParameter;
  }
  const char* bytes = static_cast<const char*>(array);
  descriptor->attributes[name] = {type, count, {bytes, bytes + count * SizeOf(type)}};
  return kCudnnSuccess;
}

// With `asked` 0 or without an array, returns only the number of elements.
int cudnnBackendGetAttribute(const CudnnBackendDescriptor* descriptor, int name, int type,
                             int64_t asked, int64_t* returned, void* array) {
  if (descriptor == nullptr) return kCudnnBadParameter;
  auto report = [&](int64_t count) {
    if (returned != nullptr) *returned = count;
    return kCudnnSuccess;
  };
  auto stored = descriptor->attributes.find(name);
  const Attribute* set = stored == descriptor->attributes.end() ? nullptr : &stored->second;
  if (set == nullptr && (name == kHeuristicResults || name == kConfigEngine)) return report(1);
  Attribute known;
  if (Known(*descriptor, name, &known)) set = &known;
  if (set == nullptr) return report(0);
  if (set->type != type) return kCudnnBadParameter;
  int64_t count = std::min(asked, set->count);
  if (array == nullptr || count == 0) return report(set->count);
  if (type == kDescriptor) {
    FillDescriptors(set, count, array);
  } else {
    std::memcpy(array, set->bytes.data(), count * SizeOf(type));
  }
  return report(type == kDescriptor ? count : set->count);
}

int cudnnBackendExecute(cudnnContext* handle, CudnnBackendDescriptor* plan,
                        CudnnBackendDescriptor* variant_pack) {
  if (handle == nullptr || plan == nullptr || variant_pack == nullptr) return kCudnnBadParameter;
  return handle->Launch();
}

}  // extern "C"
#pragma GCC visibility pop
