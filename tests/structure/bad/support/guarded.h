#ifndef GUARDED
#define GUARDED
using namespace std;
#endif
