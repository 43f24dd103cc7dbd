#include <z3++.h>

#include "../support/ok.h"
#include "graph/own.h"
#include "runtime/kernel.h"
#include "support/ok.h"
