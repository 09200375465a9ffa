#include "preload/cupti/find_cupti.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/cupti/cupti_places.h"
#include "preload/loader/loader.h"
#include "preload/record/driver_query.h"

namespace gmt::preload {
namespace {

// Functions that libraries of PyTorch releases import and that old versions lack.
constexpr const char* kImportedByPytorch[] = {"cuptiActivityEnableDriverApi",
                                              "cuptiActivityEnableRuntimeApi"};

struct Runtime {
  char path[PATH_MAX];
  unsigned major;
};

void FindRuntime(Runtime* runtime) {
  if (!FindDefiner("cudaRuntimeGetVersion", runtime->path, sizeof(runtime->path)))
    runtime->path[0] = '\0';
  runtime->major = MajorOfRuntime(runtime->path);
}

// Lists the major versions to try, best first. Returns their number.
int Majors(unsigned runtime, unsigned* majors) {
  const unsigned driver = DriverVersion() / 1000;  // the highest possible value if unknown
  int count = 0;
  if (runtime >= kOldestCupti && runtime <= kNewestCupti && runtime <= driver)
    majors[count++] = runtime;
  for (unsigned major = kNewestCupti; major >= kOldestCupti; --major) {
    if (major <= driver && major != runtime) majors[count++] = major;
  }
  return count;
}

void* OpenLoaded(unsigned major) {
  char name[32];
  snprintf(name, sizeof(name), "libcupti.so.%u", major);
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

bool FitsPytorch(void* library) {
  for (const char* name : kImportedByPytorch) {
    if (LibcDlsym(library, name) == nullptr) return false;
  }
  return true;
}

// Returns nullptr if there is none, or only one that should not be loaded.
void* Load(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr || FitsPytorch(library)) return library;
  LibcDlclose(library);
  return nullptr;
}

void* LoadBeside(const Runtime& runtime, unsigned major) {
  char path[PATH_MAX];
  for (int i = 0; PlaceBesideRuntime(runtime.path, major, i, path, sizeof(path)); ++i) {
    if (void* library = Load(path)) return library;
  }
  return nullptr;
}

void* LoadByName(unsigned major) {
  char name[32];
  snprintf(name, sizeof(name), "libcupti.so.%u", major);
  return Load(name);
}

void SetName(CuptiLibrary* library, unsigned major) {
  snprintf(library->name, sizeof(library->name), "libcupti.so.%u", major);
}

void SetName(CuptiLibrary* library, const char* path) {
  const char* slash = strrchr(path, '/');
  snprintf(library->name, sizeof(library->name), "%s", slash == nullptr ? path : slash + 1);
}

// Returns the first library found, trying the ways in their order. library->name is the name of the
// library found or, if there is none, of the one looked for.
void* Open(const Runtime& runtime, const char* named, CuptiLibrary* library) {
  unsigned majors[kNewestCupti - kOldestCupti + 1];
  const int count = Majors(runtime.major, majors);
  for (int i = 0; i < count; ++i) {
    SetName(library, majors[i]);
    if (void* open = OpenLoaded(majors[i])) return open;
  }
  if (named != nullptr) {
    SetName(library, named);
    return dlopen(named, RTLD_LAZY | RTLD_LOCAL);
  }
  for (int i = 0; i < count && runtime.path[0] != '\0'; ++i) {
    SetName(library, majors[i]);
    if (void* open = LoadBeside(runtime, majors[i])) return open;
  }
  for (int i = 0; i < count; ++i) {
    SetName(library, majors[i]);
    if (void* open = LoadByName(majors[i])) return open;
  }
  SetName(library, count == 0 ? kOldestCupti : majors[0]);
  return nullptr;
}

}  // namespace

bool FindCupti(CuptiLibrary* library, char* reason, size_t capacity) {
  Runtime runtime;
  FindRuntime(&runtime);
  const char* named = getenv("GPUMEMTRACE_CUPTI");
  if (named != nullptr && named[0] == '\0') named = nullptr;
  void* open = Open(runtime, named, library);
  const char* lacks = nullptr;
  const bool found = open != nullptr && library->Resolve(open, &lacks);
  if (open == nullptr) {
    snprintf(reason, capacity, "%s was not found", named != nullptr ? named : library->name);
  } else if (!found) {
    snprintf(reason, capacity, "%s lacks %s", library->name, lacks);
  } else if (library->GetVersion(&library->version) != CUPTI_SUCCESS) {
    library->version = 0;
  }
  dlerror();  // failed lookups must not be visible to the target
  return found;
}

}  // namespace gmt::preload
