// A library that is unloaded makes room for another one: the same addresses, other functions.
//
// Usage: replaced FIRST SECOND; allocates in the first, the second, and the first again, ten
// times. Prints whether all of them stood at one address, as {"addresses": 1}.
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
