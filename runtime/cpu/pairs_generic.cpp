#define TASO_PAIRS_NAME pairs_for_generic
#include "runtime/cpu/pairs_body.h"
