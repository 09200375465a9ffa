// session/layout.h
//
// The session: one file in shared memory (tmpfs, or a memfd) that a traced process writes and its
// collector reads. This header is the contract between the two. It is plain data: every field has a
// fixed offset, both sides may be of different builds, and either may die at any instruction.
// docs/session.md explains why it looks the way it does.
//
//   offset            section            one entry       what
//   0                 Header             4096            identity; complete before the file gets
//                                                        its name, then constant
//   4096              Control            4096            the words that change: ring tail,
//                                                        counters, handshake, exit
//   sections[kInfo]   info text          -               "name\0value\0" pairs: argv, cwd, output,
//                                                        options, settings
//   sections[kRing]   ring               Slot, 64        history: the last `count` events
//   sections[kLiveKeys], [kLiveEntries]  8 + 64          state: what is allocated now
//   sections[kStackIndex]                8               every distinct stack once,
//   sections[kTextIndex]                 8               every distinct name once,
//   sections[kCodeIndex]                 8               every distinct code object once: places
//                                                        in the arena by hash
//   sections[kModules]                   ModuleRecord    what is mapped where, append-only
//   sections[kInFlight]                  InFlightSlot    what each thread is doing inside the
//                                                        driver right now
//   sections[kContexts]                  ContextEntry    contexts seen, by the index events carry
//   sections[kArena]                     8, words        stacks, names and code objects themselves
//   sections[kLiveLevel1] ...            8 + 64          further levels of the live table, no memory
//                                                        until they are needed: first all keys of
//                                                        the level, then all its entries. Not there
//                                                        before minor version 2, and where there is
//                                                        little room (count 0)
//
// Rules
//   L1  All integers are little-endian and naturally aligned. Times are CLOCK_MONOTONIC
//       nanoseconds.
//   L2  A reader trusts nothing: it copies, checks against the file's size, and maps read-only.
//   L3  The major version changes when an old reader would misread; the minor one when it would
//       only miss something.
//   L4  What tells a session apart and who can read it keeps its place in every major version: the
//       header up to and with sections[kInfo], and the info text.

#ifndef GMT_SESSION_LAYOUT_H_
#define GMT_SESSION_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "session/vocabulary.h"

namespace gmt::session {

inline constexpr char kMagic[8] = {'G', 'M', 'T', 'S', 'E', 'S', 'S', '\n'};
inline constexpr uint32_t kAbiMajor = 4;
inline constexpr uint32_t kAbiMinor = 3;
inline constexpr uint32_t kByteOrder = 0x01020304;

// ---- Header -------------------------------------------------------------------------------------

enum SectionId : uint32_t {
  kInfo,
  kRing,
  kLiveKeys,
  kLiveEntries,
  kStackIndex,
  kTextIndex,
  kCodeIndex,
  kModules,
  kInFlight,
  kContexts,
  kArena,
  kLiveLevel1,
  kLiveLevel2,
  kLiveLevel3,
  kSectionCount,
};
// Those that every session has.
inline constexpr uint32_t kFirstSectionCount = kArena + 1;

struct Section {
  uint64_t offset;  // from the start of the file; a multiple of 4096
  uint64_t stride;  // bytes of one entry
  uint64_t count;   // entries
};

struct Header {
  char magic[8];
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t byte_order;
  uint32_t section_count;
  uint64_t file_size;

  uint64_t pid;  // as the traced process sees itself
  // Field 22 of /proc/PID/stat: with boot_id it tells a process from a later one of that pid.
  uint64_t start_ticks;
  uint8_t boot_id[16];
  uint64_t pid_namespace;  // inode
  uint64_t uid;

  uint64_t monotonic_ns;  // the two clocks at one moment; t_ns = 0 of the recording
  uint64_t realtime_ns;

  Section sections[kSectionCount];
  uint8_t unused[4096 - 96 - kSectionCount * sizeof(Section)];
};
static_assert(offsetof(Header, pid) == 32);
static_assert(offsetof(Header, monotonic_ns) == 80);
static_assert(offsetof(Header, sections) == 96);
static_assert(sizeof(Header) == 4096);

// Names in the info section ("name\0value\0" ...; a name may come several times). Unknown names are
// ignored.
//   output         absolute path of the recording; the collector inherits it open as kOutputFd
//   run_id         one for all processes of one `gpumemtrace run`
//   arg            one argument of the command line, in order
//   exe, cwd, hostname, shim (path of the preloaded library),
//   collector (path of the program that can read the session), version
//   rank, local_rank, world_size, node_rank, restart_count, job (session/launcher.h; "": not known)
//   api            "ID name": what the api numbers of events mean
//   option         "KEY=VALUE": an option of the recording, as in GPUMEMTRACE
//   setting        "NAME=VALUE": an environment variable of the target that explains its memory

// Descriptors that the shim leaves to the collector it starts.
inline constexpr int kSessionFd = 3;
inline constexpr int kTargetPidFd = 4;  // may be missing where the kernel has no pidfd
inline constexpr int kOutputFd = 5;  // created empty, locked (flock) while the recording is written

// ---- Control ------------------------------------------------------------------------------------

// Things that did not work as they should, each counted where it happened. Never zeroed.
enum Counter : uint32_t {
  kAbandoned,        // a writer found its slot busy with a writer a whole lap behind it
  kStacksFull,       // an event lost its stack
  kTextsFull,        // an event lost a name
  kLiveFull,         // an allocation found no place in the live table
  kUnrepresentable,  // a value the live table's key cannot hold
  kBeforeSession,    // calls that passed while the session was being set up
  kNoRealFunction,   // a hook found nothing to call
  kInFlightFull,
  kModulesFull,
  kPassedUnhooked,     // a real function's pointer was handed out unwrapped: no slot was free
  kContextsFull,       // an event lost its context
  kCodesFull,          // an interpreter frame of a new stack lost its name
  kActivitiesDropped,  // what CUPTI had to tell and nobody had room for
  kCounterCount,
};

// What a process learns about itself only after the session was created.
enum Fact : uint32_t {
  kPythonSource,        // "on", or why there are no Python frames
  kPythonVersion,       // "3.11.7"
  kPytorchSource,       // "on" when the first block was reported
  kAutogradSource,      // "on", or why blocks of a backward pass have no forward stack
  kCuptiSource,         // "on" and what it tells, or why not
  kNvtxSource,          // "on" when the first call was seen
  kBeforeAttachSource,  // what is known of memory that was there before an attach, or why nothing is
  kRolesSource,         // "on", or why it is not known what PyTorch's tensors are for
  kFactCount,
};

// In the number of every attach, so that one word says both what a hook has to look at and whether
// somebody asks (preload/process/process.h).
inline constexpr uint32_t kAttachAsked = 1u << 31;

enum class Handshake : uint32_t {
  kNone = 0,
  kDone = 1,
};

enum class ExitKind : uint32_t {
  kUnknown = 0,
  kExited = 1,
  kSignalled = 2,
};

// Whether a process can be attached to, and how it came to that.
enum class AttachDoor : uint32_t {
  kNone = 0,     // it is recorded from its first GPU call to its end
  kDormant = 1,  // GPUMEMTRACE=dormant
  kBrought = 2,  // the library was brought into the running process (gpumemtrace_attach)
};

struct Control {
  // The next ticket. Alone on its cache line: every event of every thread touches it.
  alignas(64) std::atomic<uint64_t> tail;

  alignas(64) std::atomic<uint64_t> counters[16];  // by Counter

  alignas(64) std::atomic<uint32_t> module_count;  // committed entries of kModules
  std::atomic<uint32_t> module_lock;   // tid of the thread that appends; 0: free. Never waited for.
  std::atomic<uint64_t> arena_used;    // words
  std::atomic<uint64_t> arena_backed;  // words that have memory; behind them is file space alone
  std::atomic<uint32_t> context_count;
  std::atomic<uint32_t> arena_errno;  // why the arena will not grow any more
  std::atomic<uint32_t> facts[8];     // by Fact: ids of texts; 0: not known

  // Start and end. The shim writes `closing` at a normal exit and waits, bounded, for `finished`.
  alignas(64) std::atomic<uint32_t> collector_pid;  // 0: none has opened the session
  std::atomic<uint32_t> collector_errno;            // of execve, when the start failed
  std::atomic<Handshake> closing;
  std::atomic<Handshake> finished;

  // How the process ended, by whoever knows: the shim's exit handler, or `gpumemtrace run` as its
  // parent.
  alignas(64) std::atomic<ExitKind> exit_kind;
  std::atomic<int32_t> exit_code;
  std::atomic<uint32_t> exit_known_by_parent;

  // Tickets whose writers gave up, newest overwriting oldest: entry = counters[kAbandoned] modulo
  // the array's length. A reader that finds its ticket here need not wait for it.
  alignas(64) std::atomic<uint64_t> abandoned_tickets[256];

  // Attach and detach (docs/session.md, "Attach"). A session with a door is recorded to only while
  // somebody wants it. Until then, and between two attaches, what lies behind the info section has
  // no memory: nobody may touch it while attach_now is 0.
  alignas(64) std::atomic<AttachDoor> attach_door;  // constant since the session has its name
  // 0: nobody; n | kAttachAsked: the n-th attach, counted from 1 up. Raised by who attaches, with the
  // session's file locked (flock) and after attach_options; put back to 0 by who detaches. The other
  // words about attaches hold the same numbers.
  std::atomic<uint32_t> attach_wanted;
  // Written by the shim at hooked calls of the GPU: the attach that is recorded for; 0: none, and
  // nothing will be written before the next one.
  std::atomic<uint32_t> attach_now;
  // Why attach number attach_refused was not begun; it is not tried again.
  std::atomic<uint32_t> attach_errno;
  std::atomic<uint32_t> attach_refused;
  std::atomic<uint32_t> attach_last;  // the newest one that was begun
  // Where the history of attach_last begins, and what the counters were then.
  std::atomic<uint64_t> attach_first_ticket;
  std::atomic<uint64_t> attach_begin_ns;
  std::atomic<uint64_t> attach_counters[16];
  // As in GPUMEMTRACE, without a zero at its end; they come on top of the process's own.
  std::atomic<uint32_t> attach_options_size;
  char attach_options[1020];

  // How many further levels of the live table have memory. kLiveGrowthEnded: there will be no more.
  std::atomic<uint32_t> live_levels;
  std::atomic<uint32_t> live_errno;  // why

  // Of a library that was brought in. 1: the calls of the process lead past it, until
  // gpumemtrace_attach is called. Who has asked for an attach looks at it then: what is asked of a
  // process that is just letting go of another attach would else never be noticed.
  std::atomic<uint32_t> slots_restored;

  uint8_t unused[4096 - 384 - 2048 - 1192 - 12];
};
static_assert(offsetof(Control, counters) == 64);
static_assert(offsetof(Control, module_count) == 192);
static_assert(offsetof(Control, arena_backed) == 208);
static_assert(offsetof(Control, facts) == 224);
static_assert(offsetof(Control, collector_pid) == 256);
static_assert(offsetof(Control, exit_kind) == 320);
static_assert(offsetof(Control, abandoned_tickets) == 384);
static_assert(offsetof(Control, attach_door) == 2432);
static_assert(offsetof(Control, attach_wanted) == 2436);
static_assert(offsetof(Control, attach_first_ticket) == 2456);
static_assert(offsetof(Control, attach_options) == 2604);
static_assert(offsetof(Control, live_levels) == 3624);
static_assert(offsetof(Control, slots_restored) == 3632);
static_assert(sizeof(Control) == 4096);
static_assert(kCounterCount <= 16 && kFactCount <= 8);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

inline constexpr uint64_t kControlOffset = sizeof(Header);

// ---- Ring ---------------------------------------------------------------------------------------

// A slot of the ring: commit word, time, six words of payload.
//
//   word  bits
//   0     commit: 0 never used; kBusy | ticket while written; ticket + 1 when whole
//   1     time_ns
//   2     value: address or handle; name (text id) of marks, ranges, threads, snapshots, sources and
//         devices, and of a stream that gets one; the CUDA event of event_* and sync; free bytes of a
//         sample
//   3     size: bytes; index of a mark; number of a range; status (text id) of a source; total bytes
//         of a sample and of a device; the set of Roles of a role; where the call of event_* and sync
//         returns to, if a caching allocator made it
//   4     stream: raw handle (of a map: the physical handle; of a region and of a heap of regions:
//         its name, a text id; of a mark or range: its domain, a text id; of a role: the class of the
//         autograd node that saves it, a text id; of a device: PCI bus id 0-31 and UUID 32-63, text ids)
//   5     stack 0-31 · 32-63: forward stack of a block; color of a mark or range; of an activity its
//         flags 0-7 and priority 16-31
//   6     thread 0-23 · duration_ns 24-63, saturating (blocks: total_reserved / 512)
//   7     kind 0-7 · space, of an activity its action 8-15 · memory 16-23 · device 24-31 ·
//         context 32-39 · api 40-51 · result 52-63 (blocks: total_allocated / 512 in 32-63)
//
// A Linux tid has 22 bits. PyTorch's allocator deals in multiples of 512 bytes, so its totals fit
// 2 TiB and 512 TiB.
//
// Where it is known which tensor a block is for, bit 15 of word 7 (the uppermost of space) is set, and
// the id of the tensor's layout (TensorLayout, 32 bits) stands beside size and stream:
//
//   3     size / 512 in 0-39 · lower 24 bits of the id in 40-63
//   4     stream 0-55 · upper 8 bits of the id in 56-63
//
// So it does in a live entry's size and stream, and the bit is 56 of its place.
struct Slot {
  std::atomic<uint64_t> commit;
  std::atomic<uint64_t> words[7];
};
static_assert(sizeof(Slot) == 64);

inline constexpr uint64_t kBusy = uint64_t{1} << 63;

// The api number of what was there before somebody attached; it has a name of its own in the info
// section. Blocks have no api in the ring: theirs are those without a stack that were allocated at
// attach_begin_ns.
inline constexpr uint16_t kBeforeAttachApi = 4095;

// ---- Live table ---------------------------------------------------------------------------------

// Keys stand apart from entries so that a probe reads eight of them per cache line.
//
//   key = space << 60 | value. Space 15 marks the two states below; an unused key is 0.
inline constexpr uint64_t kKeyEmpty = 0;
inline constexpr uint64_t kKeyClaimed = uint64_t{15} << 60;  // a writer is filling the entry
inline constexpr uint64_t kKeyErased = kKeyClaimed | 1;      // free for the next insert
inline constexpr uint64_t kKeyValueMask = (uint64_t{1} << 60) - 1;

struct LiveEntry {
  std::atomic<uint64_t> version;  // odd while being written
  std::atomic<uint64_t> ticket;   // of the event that wrote it
  std::atomic<uint64_t> size;
  std::atomic<uint64_t> stream;  // as in the event; physical handle of a mapping
  std::atomic<uint64_t> time_ns;
  std::atomic<uint64_t> stacks;  // stack 0-31, forward stack 32-63
  // thread 0-23, kind 24-31, memory 32-39, device 40-47, context 48-55, has a tensor's layout 56
  std::atomic<uint64_t> place;
  // api 0-15; 16-47 further references, of a block the nodes of the autograd graph that save it; Roles
  // 48-63
  std::atomic<uint64_t> api;
};
static_assert(sizeof(LiveEntry) == 64);

// Levels behind the first, and a bit of Control::live_levels.
inline constexpr uint32_t kLiveLevels = kSectionCount - kLiveLevel1;
inline constexpr uint32_t kLiveGrowthEnded = 1u << 31;

// ---- Stacks, texts and code objects -------------------------------------------------------------

// An index word is tag << 40 | offset, tag being the upper bits of the hash and offset the entry's
// place in the arena (in units of 8 bytes, never 0). The id of a stack, text or code object is that
// offset: ids are not dense.
inline constexpr int kArenaOffsetBits = 40;

// A stack in the arena is its innermost frames and the stack whose outermost frames it shares:
//
//   StackHeader
//   `own` frames, innermost first
//   the ids of the code objects of its own interpreter frames, in their order, two to a word, the
//   first in the lower half
//
// The frames further out, depth - own of them, are the outermost ones of the stack `outer`, which
// stands before it in the arena.
struct StackHeader {
  uint16_t depth;
  uint16_t flags;       // StackFlags
  uint32_t generation;  // of the module log when it was recorded
  uint16_t own;
  uint16_t codes;  // interpreter frames among the own ones
  uint32_t outer;  // id; 0 where own == depth
  // Of all that tells this stack from others: depth, flags, generation, all frames, and what the
  // code objects of its interpreter frames are, beside where they lie.
  uint64_t digest[2];
};
static_assert(sizeof(StackHeader) == 32);

enum StackFlags : uint16_t {
  kStackTruncated = 1,  // frames further out exist
  kStackPython = 2,     // it has interpreter frames
  // Where some interpreter frames belong between the native ones is not known: they stand behind
  // them all.
  kStackUnmerged = 4,
  kStackNoPython = 8,  // the thread was in Python, and its frames could not be read
};

// A frame is one word.
//   native        address in memory; kExactFrame: of the instruction itself, which a signal
//                 interrupted, else of the return
//   interpreter   kInterpreterFrame · address of the code object / 8 in bits 19-62 · offset of the
//                 instruction in units of 2 bytes in bits 0-18: kBeforeInstructions where none has
//                 run yet, kMaxInstruction for what does not fit
inline constexpr uint64_t kExactFrame = uint64_t{1} << 62;
inline constexpr uint64_t kInterpreterFrame = uint64_t{1} << 63;
inline constexpr int kInstructionBits = 19;
inline constexpr uint32_t kMaxInstruction = (1u << kInstructionBits) - 1;
inline constexpr uint32_t kBeforeInstructions = kMaxInstruction - 1;
inline constexpr uint32_t kMaxStackDepth = 256;

constexpr uint64_t InterpreterFrame(uint64_t code, uint32_t instruction) {
  return kInterpreterFrame | code >> 3 << kInstructionBits |
         (instruction < kMaxInstruction ? instruction : kMaxInstruction);
}

constexpr uint64_t CodeAddress(uint64_t frame) {
  return (frame & ~kInterpreterFrame) >> kInstructionBits << 3;
}

// A text in the arena: a word with its length in bytes, then the bytes, padded with zeros to a
// whole word.
inline constexpr uint32_t kMaxTextLength = 1024;

// What PyTorch asked for when it took a block: bytes of a text in the arena.
struct TensorLayout {
  uint64_t bytes;     // that it asked for
  uint8_t dtype;      // at::ScalarType
  uint8_t dimension;  // number of dimensions
  uint8_t unused[6];
  int64_t sizes[5];  // of the first dimensions; 0 behind the last
};
static_assert(sizeof(TensorLayout) == 56);
inline constexpr uint32_t kLayoutDimensions = 5;

// A code object in the arena: this, then its line table, padded with zeros to a whole word.
struct CodeHeader {
  uint16_t line_table;  // LineTable
  uint16_t flags;       // CodeFlags
  uint32_t first_line;
  uint32_t function, file;  // ids of texts
  uint64_t line_table_bytes;
};
static_assert(sizeof(CodeHeader) == 24);

// How a code object tells lines; by the first version of CPython that did.
enum class LineTable : uint16_t {
  kNone = 0,
  kPython39 = 1,   // co_lnotab (3.6 to 3.9)
  kPython310 = 2,  // co_linetable, pairs of bytes
  kPython311 = 3,  // co_linetable, location table
  kLast = kPython311,
};

enum CodeFlags : uint16_t {
  kLineTableCut = 1,  // it was longer than kMaxLineTable
};
inline constexpr uint32_t kMaxLineTable = 64 << 10;

// ---- Modules ------------------------------------------------------------------------------------

struct ModuleRecord {
  uint64_t start;  // addresses [start, end) belong to it
  uint64_t end;
  uint64_t bias;  // address in memory minus address in the ELF file
  uint64_t seen_ns;
  // Raised by each module that took over addresses of an earlier one, and by each that was
  // unloaded: then a record without path and build-id covers its addresses. An address in a stack
  // of generation G belongs to the youngest record of generation <= G that covers it.
  uint32_t generation;
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t path_size;
  char path[948];  // cut at its front where it is longer, which nobody has seen
};
static_assert(sizeof(ModuleRecord) == 1024);

// ---- In-flight slots ----------------------------------------------------------------------------

// Held by a thread from just before to just after a driver call. thread 0: free.
struct InFlightSlot {
  std::atomic<uint32_t> thread;
  std::atomic<uint32_t> api;
  std::atomic<uint64_t> since_ns;
  std::atomic<uint64_t> size;
  std::atomic<uint64_t> stack;
  uint64_t unused[4];
};
static_assert(sizeof(InFlightSlot) == 64);

// ---- Contexts -----------------------------------------------------------------------------------

// Events carry index + 1 of their context's entry. Entries are filled in order and keep their
// handle for ever: a context that comes back under a handle has the handle's index.
struct ContextEntry {
  std::atomic<uint64_t> handle;  // CUcontext; 0: unused, as are all behind it
  std::atomic<uint64_t> device;  // + 1; 0: not known, or the context has ended
};
static_assert(sizeof(ContextEntry) == 16);

}  // namespace gmt::session

#endif  // GMT_SESSION_LAYOUT_H_
