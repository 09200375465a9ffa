// Loads a library where another one was unloaded: the same addresses, different functions.
//
// Usage: replaced FIRST SECOND
// Ten times loads each library, allocates in it and unloads it. Prints the number of different
// addresses of their function, as {"addresses": 1}.
#include <dlfcn.h>
#include <stdio.h>

#include <set>

int main(int count, char** words) {
  if (count != 3) return 2;
  std::set<void*> places;
  for (size_t round = 0; round < 10; ++round) {
    for (const int which : {1, 2}) {
      void* const library = dlopen(words[which], RTLD_NOW);
      if (library == nullptr) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
      }
      void* const entry = dlsym(library, "Allocate");
      places.insert(entry);
      reinterpret_cast<void (*)(size_t)>(entry)(1 + 2 * round + which);
      dlclose(library);
    }
  }
  printf("{\"addresses\": %zu}\n", places.size());
  return 0;
}
