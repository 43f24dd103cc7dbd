#pragma once
int  badly_formatted ;
namespace taso {
struct Twice {};
}  // namespace taso
