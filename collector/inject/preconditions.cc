#include "collector/inject/preconditions.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/inject/library_place.h"
#include "collector/inject/registers.h"
#include "collector/inject/seccomp_filter.h"

namespace gmt::inject {
namespace {

constexpr char kStartDormant[] =
    "Start it with: GPUMEMTRACE=dormant LD_PRELOAD=libgpumemtrace.so, and attach whenever you want";

Precondition Pass(const char* name, std::string found) {
  return {name, Verdict::kPass, std::move(found), ""};
}
Precondition Fail(const char* name, std::string found, std::string fix) {
  return {name, Verdict::kFail, std::move(found), std::move(fix)};
}
Precondition Note(const char* name, std::string found, std::string fix) {
  return {name, Verdict::kNote, std::move(found), std::move(fix)};
}

Precondition CheckProcess(const TargetInfo& t) {
  constexpr char kName[] = "process";
  if (!t.exists)
    return Fail(kName, "there is no such process",
                "List processes with: ps, or gpumemtrace list. In a "
                "container, pids differ from those outside");
  if (t.thread_of != 0)
    return Fail(kName, absl::StrCat("that is a thread of process ", t.thread_of),
                absl::StrCat("Attach to its process: gpumemtrace attach ", t.thread_of));
  if (t.kernel_thread)
    return Fail(kName, "that is a thread of the kernel", "Give the pid of a program");
  if (t.state == 'Z' && t.threads > 1)
    return Fail(
        kName,
        "its first thread has ended while others run, so that the kernel reports nothing about it",
        kStartDormant);
  if (t.state == 'Z' || t.state == 'X')
    return Fail(kName, "it has ended and waits for its parent to reap it",
                "There is nothing to attach to");
  return Pass(kName,
              absl::StrCat(t.name, ", ", t.threads, t.threads == 1 ? " thread" : " threads"));
}

Precondition CheckState(const TargetInfo& t) {
  constexpr char kName[] = "state";
  if (t.state == 'T')
    return Fail(kName, "it is stopped by a signal and cannot execute anything",
                absl::StrCat("Continue it with: kill -CONT ", t.pid));
  if (t.state == 'D' && t.threads == 1)
    return Fail(
        kName, "it waits in the kernel, where nothing can interrupt it (state D)",
        "Try again when the disk, the network file system or the driver it waits for has answered");
  return Pass(kName, t.state == 'R' ? "it runs" : "it runs or waits");
}

Precondition CheckTracer(const TargetInfo& t) {
  constexpr char kName[] = "tracer";
  if (t.tracer == 0) return Pass(kName, "it is not being traced");
  const std::string who = absl::StrCat(t.tracer_name.empty() ? "a process" : t.tracer_name,
                                       " (process ", t.tracer, ")");
  return Fail(kName, absl::StrCat("it is being traced by ", who, ", and can have one tracer only"),
              absl::StrCat("Let that one detach first, or end it: kill ", t.tracer));
}

Precondition CheckUser(const TargetInfo& t) {
  constexpr char kName[] = "user";
  const uid_t own = geteuid();
  const bool same =
      std::all_of(t.uids.begin(), t.uids.end(), [&](uid_t uid) { return uid == own; });
  if (same) return Pass(kName, absl::StrCat("it belongs to you (user ", own, ")"));
  if (t.can_trace_others)
    return Pass(kName, absl::StrCat("it belongs to user ", t.uid,
                                    ", and you may trace other users' processes"));
  if (t.uids.front() != t.uid)
    return Fail(
        kName,
        absl::StrCat("it has the rights of user ", t.uid, " and was started by user ",
                     t.uids.front(), " (a set-user-ID program, or one that has changed its user)"),
        absl::StrCat("A copy of it without set-user-ID can be recorded. One that has only changed "
                     "its user: sudo gpumemtrace attach ",
                     t.pid));
  return Fail(kName, absl::StrCat("it belongs to user ", t.uid, ", and you are user ", own),
              absl::StrCat("Attach as that user or as root: sudo gpumemtrace attach ", t.pid));
}

// The wording for each value follows the kernel documentation, admin-guide/LSM/Yama.
Precondition YamaForbids(const TargetInfo& t) {
  constexpr char kFile[] = "kernel.yama.ptrace_scope";
  const std::string found = absl::StrCat(kFile, " is ", t.yama_scope);
  if (t.yama_scope >= 3)
    return Fail("ptrace", absl::StrCat(found, ": tracing is disabled until this machine restarts"),
                kStartDormant);
  if (t.yama_scope == 2)
    return Fail("ptrace", absl::StrCat(found, ": only root may trace"),
                absl::StrCat("Attach as root: sudo gpumemtrace attach ", t.pid));
  return Fail("ptrace", absl::StrCat(found, ": a process may be traced by its ancestors only"),
              absl::StrCat("Attach as root: sudo gpumemtrace attach ", t.pid,
                           "; or allow it until the next restart: sudo sysctl ", kFile,
                           "=0; or start the program with: setpriv --ptracer any COMMAND"));
}

Precondition CheckPtrace(const TargetInfo& t) {
  constexpr char kName[] = "ptrace";
  if (t.memory_errno == 0 && t.maps_errno == 0) return Pass(kName, "the kernel allows tracing it");
  if (t.looks_undumpable && !t.can_trace_others)
    return Fail(kName,
                "it forbids being looked at (prctl PR_SET_DUMPABLE, a set-user-ID program, or "
                "one with file capabilities)",
                absl::StrCat("Attach as root: sudo gpumemtrace attach ", t.pid));
  if (t.yama_scope > 0 && !(t.can_trace_others && t.yama_scope < 3)) return YamaForbids(t);
  if (!t.own_user_namespace)
    return Fail(kName, "it lives in another user namespace, in which you have no rights",
                "Attach from the machine itself as root, or from inside its container");
  if (!t.can_trace_others)
    return Fail(kName,
                "the kernel does not allow tracing it, and this program has no CAP_SYS_PTRACE",
                "Attach as root; or start your container with: --cap-add=SYS_PTRACE");
  return Fail(
      kName,
      absl::StrCat("the kernel does not allow tracing it (",
                   std::strerror(t.memory_errno != 0 ? t.memory_errno : t.maps_errno),
                   "): it has rights that this program lacks, or a security module forbids it"),
      "Attach from the machine itself as root. The reason may be in: dmesg");
}

Precondition CheckProgram(const TargetInfo& t) {
  constexpr char kName[] = "program";
  switch (t.kind) {
    case ProgramKind::kGlibc:
      return Pass(kName, "it is a 64-bit glibc program");
    case ProgramKind::kMusl:
      return Fail(kName, "it is a program of musl, for which the library is not made",
                  "CUDA needs glibc, so another program uses the GPU. Is it a child of this one?");
    case ProgramKind::kStatic:
      return Fail(kName, "it is a static program, which cannot load a library",
                  "Link it dynamically to record it");
    case ProgramKind::k32Bit:
      return Fail(kName, "it is a 32-bit program", "CUDA is 64-bit only: it uses no GPU");
    case ProgramKind::kOtherMachine:
      return Fail(kName, "it is a program for another processor, run by an emulator",
                  "Attach inside the emulated system");
    case ProgramKind::kNoLibc:
      return Fail(kName, absl::StrCat("it has no libc.so.6; its loader is ", t.interpreter),
                  "The library supports only glibc programs");
    case ProgramKind::kHosted:
      return Fail(
          kName,
          absl::StrCat("it runs inside of ", t.name,
                       ", a static program that has loaded a libc for it, as valgrind does"),
          kStartDormant);
    case ProgramKind::kUnknown:
      break;
  }
  return Fail(kName, "its program file cannot be read", "Attach as root");
}

Precondition CheckProcessor() {
  if (IsSupported()) return Pass("processor", "x86-64");
  return Fail("processor", "injecting a library into a process is implemented for x86-64 only",
              kStartDormant);
}

Precondition CheckSeccomp(const TargetInfo& t) {
  constexpr char kName[] = "seccomp";
  if (t.seccomp == 0) return Pass(kName, "it has no seccomp filter");
  if (t.seccomp == 1)
    return Fail(kName, "it may only call read, write and exit (strict seccomp)", kStartDormant);
  const absl::StatusOr<std::string> forbidden = FindForbiddenCallOf(t.pid);
  if (forbidden.ok()) {
    if (forbidden->empty()) return Pass(kName, "its filters allow loading a library");
    return Fail(kName, absl::StrCat("its seccomp filters forbid loading a library: ", *forbidden),
                kStartDormant);
  }
  // All processes of a container have the container's filters.
  if (t.own_seccomp == 2 && t.own_seccomp_filters >= t.seccomp_filters)
    return Pass(kName, "it has as many filters as this program, which can load libraries");
  if (absl::IsUnavailable(forbidden.status())) {
    return Fail(kName,
                "its seccomp filters cannot be read now: its first thread waits in the kernel, and "
                "cannot be stopped",
                "Attach again in a moment");
  }
  return Fail(kName,
              "it has seccomp filters that this program may not read: one of them could end the "
              "process when it loads a library",
              "Attach as root on the machine itself (CAP_SYS_ADMIN), or inside its container. If "
              "you know that it may "
              "load libraries: --method inject");
}

Precondition CheckLibrary(const TargetInfo& t, const std::string& library) {
  constexpr char kName[] = "library";
  if (SeesFile(t, library)) return Pass(kName, absl::StrCat("it sees ", library));
  return Note(kName,
              absl::StrCat("it does not see ", library, " (it has another root: a container)"),
              "A temporary copy is put into its /tmp");
}

bool IsOurs(const Mapping& m) { return m.Name().starts_with("libgpumemtrace"); }

Precondition CheckGpu(const TargetInfo& t) {
  constexpr char kName[] = "gpu";
  if (UsesGpu(t.pid)) return Pass(kName, "it has the CUDA driver loaded");
  return Note(kName, "it has not loaded the CUDA driver",
              "Nothing is recorded before it does. Does one of its children use the GPU?");
}

}  // namespace

std::vector<Precondition> CheckAttachable(const TargetInfo& t, const std::string& library) {
  std::vector<Precondition> checks = {CheckProcess(t)};
  if (checks.front().verdict == Verdict::kFail) return checks;
  checks.push_back(CheckState(t));
  checks.push_back(CheckTracer(t));
  checks.push_back(CheckUser(t));
  checks.push_back(CheckPtrace(t));
  const bool readable =
      checks.back().verdict != Verdict::kFail && checks[3].verdict != Verdict::kFail;
  checks.push_back(CheckProcessor());
  if (!readable) return checks;  // the checks below need what could not be read
  checks.push_back(CheckProgram(t));
  if (checks.back().verdict == Verdict::kFail) return checks;
  if (std::any_of(t.map.begin(), t.map.end(), IsOurs))
    checks.push_back(
        Note("loaded", "it has already loaded the library", "Nothing has to be injected"));
  if (checks[1].verdict != Verdict::kFail && checks[2].verdict != Verdict::kFail)
    checks.push_back(CheckSeccomp(t));
  checks.push_back(CheckLibrary(t, library));
  checks.push_back(CheckGpu(t));
  return checks;
}

std::string FirstRefusal(const TargetInfo& target, const std::vector<Precondition>& checks) {
  for (const Precondition& check : checks) {
    if (check.verdict == Verdict::kFail)
      return absl::StrCat("process ", target.pid, ": ", check.found, ". ", check.fix);
  }
  return {};
}

}  // namespace gmt::inject
