// A sandbox in which the host finds the bad plugins.
#pragma once
#include "e2e/support/sandbox.hpp"

namespace assay::test {

class BadPluginSandbox : public Sandbox {
 protected:
  BadPluginSandbox() : Sandbox(BAD_PLUGINS) {}
};

}  // namespace assay::test
