// What a module was built from, and on which processors it runs.
#pragma once
#include <string>

namespace hirank {

// The fingerprint of all sources; see setup.py and __init__.py.
const char* fingerprint();
// Return whether this processor can run a module of this name.
bool supports(const std::string& instruction_set);

}  // namespace hirank
