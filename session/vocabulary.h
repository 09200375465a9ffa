// session/vocabulary.h
//
// The vocabulary of session events: event kinds, actions of activities, kinds of memory and name
// spaces of addresses. The numeric values are part of the session layout (session/layout.h). Most
// of them equal values in proto/gmt.proto; the comment of each enum says so.

#ifndef GMT_SESSION_VOCABULARY_H_
#define GMT_SESSION_VOCABULARY_H_

#include <cstdint>

namespace gmt::session {

// Kinds of event. The values are those of gmt.Kind in proto/gmt.proto.
enum class Kind : uint8_t {
  kNone = 0,
  kAlloc = 1,
  kFree = 2,
  kFreeDone = 3,
  kAllocFailed = 4,
  kReserve = 5,
  kUnreserve = 6,
  kCreate = 7,
  kRelease = 8,
  kMap = 9,
  kUnmap = 10,
  kImport = 11,
  kUnimport = 12,
  kRegister = 13,
  kUnregister = 14,
  kContextCreate = 15,
  kContextReset = 16,
  kStream = 17,
  kEventRecord = 18,
  kEventWait = 19,
  kSync = 20,
  kMark = 21,
  kRangeBegin = 22,
  kRangeEnd = 23,
  kThread = 24,
  kSample = 25,
  kSnapshot = 26,  // a snapshot requested by the process
  kPool = 29,
  kGraph = 30,
  kModule = 31,
  kCopy = 35,
  kSource = 36,   // the status of an event source
  kDevice = 37,   // properties or name of a device
  kWitness = 38,  // a memory event reported by CUPTI; does not change the live set
  kRole = 39,     // the roles of a live allocation changed; its size is the set of Role
  kLast = kRole,
};
// 27, 28 and 32 to 34 occur only in recordings, never as events of a process.
constexpr bool IsKind(uint64_t kind) {
  return (kind > 0 && kind <= static_cast<uint64_t>(Kind::kSnapshot)) ||
         (kind >= static_cast<uint64_t>(Kind::kPool) &&
          kind <= static_cast<uint64_t>(Kind::kModule)) ||
         (kind >= static_cast<uint64_t>(Kind::kCopy) && kind <= static_cast<uint64_t>(Kind::kLast));
}

// Sets of kinds as bit masks, because membership is tested several times per event.
constexpr uint64_t KindsFrom(Kind first, Kind last) {
  return (uint64_t{2} << static_cast<uint64_t>(last)) -
         (uint64_t{1} << static_cast<uint64_t>(first));
}
static_assert(static_cast<uint64_t>(Kind::kLast) < 63);
constexpr bool IsOneOf(uint64_t kinds, Kind kind) {
  return (kinds >> (static_cast<uint64_t>(kind) & 63) & 1) != 0;
}

// Events that report an activity and do not change the live set. They have an action and flags.
constexpr bool IsActivity(Kind kind) {
  return IsOneOf(KindsFrom(Kind::kContextCreate, Kind::kSync) |
                     KindsFrom(Kind::kPool, Kind::kModule) | KindsFrom(Kind::kCopy, Kind::kCopy) |
                     KindsFrom(Kind::kDevice, Kind::kWitness),
                 kind);
}
// Events with a name.
constexpr bool IsNote(Kind kind) {
  return IsOneOf(KindsFrom(Kind::kMark, Kind::kThread) | KindsFrom(Kind::kSource, Kind::kSource),
                 kind);
}

// What an activity did. ActionName() (session/record.h) returns the words used in recordings.
enum class Action : uint8_t {
  kNone = 0,
  kCreate,
  kDestroy,
  kName,
  kImport,
  kTrim,
  kStream,  // of a wait: the thing waited for, like the next two
  kEvent,
  kDevice,
  kInstantiate,
  kLaunch,
  kBeginCapture,
  kEndCapture,
  kLoad,
  kUnload,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kHostToHost,
  kPeer,
  kArray,
  kMemset,
  kAlloc,
  kFree,
  kPoolCreate,
  kPoolDestroy,
  kPoolTrim,
  kLast = kPoolTrim,
};

enum ActivityFlags : uint8_t {
  kCalledByAllocator =
      1,  // a caching allocator made the call to learn when streams finish with a block
  kSeenByCupti = 2,
  kInsideCall = 4,  // made inside a call that has its own event and includes this call's duration
  kStreamUnknown = 8,
  kNonBlocking = 16,  // of a new stream: it does not synchronize with the legacy default stream
};

// What a live allocation is used for, observed through PyTorch's own calls. A set of bits with the
// values of gmt.Roles in proto/gmt.proto.
enum Role : uint32_t {
  kParameter = 1,  // a leaf of the autograd graph that requires a gradient
  kGradient = 2,   // the gradient that AccumulateGrad stored for a leaf
  kSaved = 4,      // saved by at least one graph node for its backward pass
  kExpectsGradient =
      8,  // a parameter reachable from a graph: a backward pass computes its gradient
};
inline constexpr uint32_t kAllRoles = kParameter | kGradient | kSaved | kExpectsGradient;

// Kinds of memory. The values are those of gmt.Memory in proto/gmt.proto.
enum class Memory : uint8_t {
  kNone = 0,
  kDevice = 1,
  kManaged = 2,
  kPinned = 3,
  kRegistered = 4,
  kPool = 5,
  kVmm = 6,
  kArray = 7,
  kMipmapped = 8,
  kIpc = 9,
  kExternal = 10,
  kGraph = 11,
  kGraphics = 12,
  kMulticast = 13,
  kBlock = 14,
  kRegion = 15,
  kLast = kRegion,
};

// Name spaces of addresses and handles. The same number can be live in several of them: a
// reservation and its first mapping share an address, and so do a segment and its first block.
enum class Space : uint8_t {
  kNone = 0,
  kDevice = 1,
  kReservation = 2,
  kMapping = 3,
  kPhysical = 4,
  kArray = 5,
  kPinned = 6,
  kPool = 7,
  kIpc = 8,
  kBlock = 9,
  kRegion = 10,
  kLast = kRegion,
};

inline constexpr uint8_t kNoDevice = 0xff;  // host memory, or the device is unknown

}  // namespace gmt::session

#endif  // GMT_SESSION_VOCABULARY_H_
