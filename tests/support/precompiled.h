/// What most tests include, for builds that parse it once (TASO_PRECOMPILED_HEADERS). A test includes what it uses
/// nevertheless: other builds do without this.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "support/file.h"
#include "support/random.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"
