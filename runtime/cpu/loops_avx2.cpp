#define TASO_LOOPS_NAME loops_for_avx2
#define TASO_LOOPS_SET "avx2"
#include "runtime/cpu/loops_body.h"
