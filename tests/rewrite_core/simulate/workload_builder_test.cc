#include "rewrite_core/simulate/workload_builder.h"

#include <gtest/gtest.h>
