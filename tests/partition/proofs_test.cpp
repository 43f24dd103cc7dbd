#include <gtest/gtest.h>
namespace {
TEST(Placeholder, Is) {}
}  // namespace
