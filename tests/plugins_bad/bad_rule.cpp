// The rule of one plugin; BAD_RULE is set by the build.
#include "bad_rule.hpp"

const Rule rule = Rule::BAD_RULE;
