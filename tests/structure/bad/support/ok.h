#pragma once
namespace taso {
struct Twice {};
}  // namespace taso
