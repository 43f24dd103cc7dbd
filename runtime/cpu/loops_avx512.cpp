#define TASO_LOOPS_NAME loops_for_avx512
#define TASO_LOOPS_SET "avx512"
#include "runtime/cpu/loops_body.h"
