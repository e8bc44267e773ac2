#pragma once

#include "ops/reference.hpp"

namespace tessera::ref {

/// exp(x - max(x)) / sum(exp(x - max(x))); zeros when every x is -infinity.
Values softmax_row(const Values& x);

}  // namespace tessera::ref
