// Prints everything about its process that a profiler could disturb, before, between and after GPU
// calls, as JSON. The output must be the same with and without a profiler.
//
// Exercises: descriptors (those that are open, and the number that open() returns), signal
// dispositions, mask, pending signals and the count of SIGCHLD, children and their exit codes,
// environment (its own and a child's), working directory, umask, limits, command line, errno, the
// loader's last error, timers, threads, floating point modes, priorities, and every kind of exit.
//
// Usage: observer [END]    END: return (default), exit, _exit, abort, segv, kill, term, throw
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace {

volatile sig_atomic_t sigchlds = 0;
void CountSigchld(int) { sigchlds = sigchlds + 1; }
void OwnHandler(int) {}

void Print(const char* name, const std::string& value) {
  std::printf("{\"%s\": \"%s\"}\n", name, value.c_str());
}
void Print(const char* name, long value) { Print(name, std::to_string(value)); }

std::string OpenDescriptors() {
  std::vector<int> fds;
  DIR* dir = opendir("/proc/self/fd");
  for (const dirent* entry = readdir(dir); entry != nullptr; entry = readdir(dir)) {
    if (entry->d_name[0] != '.') fds.push_back(std::atoi(entry->d_name));
  }
  closedir(dir);
  std::sort(fds.begin(), fds.end());
  std::string text;
  for (const int fd : fds) text += std::to_string(fd) + " ";
  return text;
}

int NumberOfAnOpen() {
  const int fd = open("/dev/null", O_RDONLY);
  close(fd);
  return fd;
}

std::string SignalState() {
  std::string text;
  for (int signal = 1; signal <= 64; ++signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) != 0) continue;
    const bool own = action.sa_handler == OwnHandler || action.sa_handler == CountSigchld;
    text += action.sa_handler == SIG_DFL   ? 'd'
            : action.sa_handler == SIG_IGN ? 'i'
            : own                          ? 'o'
                                           : '?';
  }
  sigset_t mask, pending;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  sigpending(&pending);
  for (const sigset_t& set : {mask, pending}) {
    text += ' ';
    for (int signal = 1; signal <= 64; ++signal) text += sigismember(&set, signal) == 1 ? '1' : '0';
  }
  stack_t alternative;
  sigaltstack(nullptr, &alternative);
  return text + (alternative.ss_flags == SS_DISABLE ? " no altstack" : " altstack");
}

// Returns the lines of /proc/self/status that describe the process rather than its memory.
std::string Status() {
  std::ifstream file("/proc/self/status");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    for (const char* wanted : {"Name:", "Umask:", "TracerPid:", "Uid:", "Gid:", "Threads:",
                               "NoNewPrivs:", "Seccomp:", "CapEff:", "Cpus_allowed:"}) {
      if (line.rfind(wanted, 0) == 0) text += line.substr(line.find(':') + 1) + ";";
    }
  }
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

std::string Limits() {
  std::string text;
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit;
    getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    text += std::to_string(limit.rlim_cur) + "/" + std::to_string(limit.rlim_max) + " ";
  }
  return text;
}

// Returns whether a variable exists only to start the profiler, or lists its library.
bool IsTheProfilers(const std::string& variable) {
  return variable.rfind("GPUMEMTRACE", 0) == 0 || variable.rfind("LD_PRELOAD=", 0) == 0 ||
         variable.rfind("NVTX_INJECTION64_PATH=", 0) == 0;
}

std::string Joined(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) {
    if (IsTheProfilers(line)) continue;
    for (const char c : line + ";") text += c == '"' || c == '\\' || c < ' ' ? '?' : c;
  }
  return text;
}

std::string Environment() {
  std::vector<std::string> lines;
  for (char** variable = environ; *variable != nullptr; ++variable) lines.push_back(*variable);
  return Joined(lines);
}

std::string EnvironmentOfAChild() {
  FILE* pipe = popen("env -0", "r");
  std::vector<std::string> lines(1);
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) {
    if (c == '\0') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(c);
    }
  }
  const int status = pclose(pipe);
  return Joined(lines) + std::to_string(status);
}

std::string Children() {
  std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string WaitForAnyChild() {
  int status = 0;
  const pid_t child = waitpid(-1, &status, WNOHANG);
  return child < 0 ? std::strerror(errno) : child == 0 ? "a child is alive" : "a child has ended";
}

std::string Forked(bool gpu) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    void* memory = nullptr;
    if (gpu) cudaMalloc(&memory, 5000);
    _exit(gpu ? 7 : 6);
  }
  int status = 0;
  const pid_t ended = wait(&status);
  return (ended == child ? "own child " : "another child ") + std::to_string(status);
}

void Observe(const char* when) {
  Print("when", when);
  Print("descriptors", OpenDescriptors());
  Print("open", NumberOfAnOpen());
  Print("signals", SignalState());
  Print("sigchld", sigchlds);
  Print("children", Children());
  Print("wait", WaitForAnyChild());
  Print("status", Status());
  Print("limits", Limits());
  Print("environment", Environment());
  Print("cwd", std::string(get_current_dir_name()));
  Print("nice", getpriority(PRIO_PROCESS, 0));
  Print("session", getsid(0) == getpid() ? "own" : "inherited");
  Print("group", getpgrp() == getpid() ? "own" : "inherited");
  Print("subreaper", [] {
    int value = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &value);
    return static_cast<long>(value);
  }());
  Print("dumpable", prctl(PR_GET_DUMPABLE));
  Print("rounding", std::fegetround());
  itimerval timer;
  getitimer(ITIMER_REAL, &timer);
  Print("timer", timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 ? "runs" : "none");
}

void Call(const char* name, cudaError_t result) {
  const int error = errno;
  const char* loader = dlerror();
  std::printf("{\"call\": \"%s\", \"result\": %d, \"errno\": %d, \"dlerror\": \"%s\"}\n", name,
              static_cast<int>(result), error, loader == nullptr ? "" : loader);
}

void CallTheGpu() {
  void *device = nullptr, *host = nullptr, *none = nullptr;
  errno = 77;
  Call("cudaMalloc", cudaMalloc(&device, 1000003));
  errno = 78;
  Call("cudaMalloc too much", cudaMalloc(&none, size_t{1} << 50));
  errno = 79;
  Call("cudaHostAlloc", cudaHostAlloc(&host, 70001, cudaHostAllocDefault));
  errno = 80;
  Call("cudaFree", cudaFree(device));
  errno = 81;
  Call("cudaFreeHost", cudaFreeHost(host));
}

int End(const std::string& how) {
  std::fflush(nullptr);
  if (how == "exit") std::exit(3);
  if (how == "_exit") _exit(4);
  if (how == "abort") std::abort();
  if (how == "segv") raise(SIGSEGV);
  if (how == "kill") raise(SIGKILL);
  if (how == "term") raise(SIGTERM);
  if (how == "throw") throw std::runtime_error("uncaught exception");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  struct sigaction action = {};
  action.sa_handler = CountSigchld;
  sigaction(SIGCHLD, &action, nullptr);
  signal(SIGUSR1, OwnHandler);
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  raise(SIGUSR2);  // stays pending
  std::fesetround(FE_TOWARDZERO);
  umask(027);
  for (int i = 1; i < argc; ++i) Print("argument", argv[i]);

  Observe("before the first GPU call");
  CallTheGpu();
  Observe("after it");
  Print("fork", Forked(false));
  Print("fork that uses the GPU", Forked(true));
  Print("environment of a child", EnvironmentOfAChild());
  CallTheGpu();
  Observe("after children");
  return End(argc > 1 ? argv[1] : "return");
}
