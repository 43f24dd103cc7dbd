#define TASO_PAIRS_NAME pairs_for_avx2
#include "runtime/cpu/pairs_body.h"
