// A file of its own, since the fingerprint changes with each of the sources.
#include "about.h"

#define TEXT(name) #name
#define EXPANDED_TEXT(name) TEXT(name)

namespace hirank {

const char* fingerprint() { return EXPANDED_TEXT(HIRANK_FINGERPRINT); }

bool supports(const std::string& instruction_set) {
    if (instruction_set == "baseline") return true;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (instruction_set == "x86_64_v3")
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
#endif
    return false;
}

}  // namespace hirank
